"""The program ``masquerade``: its options, and the commands that have no module of their own.

A mistake of the user gets one paragraph on stderr and status 1; ``masquerade --debug ...`` shows its traceback. Keys
come from a file or a prompt, never from the command line, and appear in no log and no report.
"""

import gc
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Table

from masquerade.cli import assets, common, faces, lineage, params, photographs, score, weights
from masquerade.core import files, process, seeding
from masquerade.core.errors import MasqueradeError, explain_missing_packages

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Anonymize faces with re-implemented published methods, and compare these methods.",
)
app.add_typer(params.app, name="params")
app.add_typer(lineage.app, name="lineage")
app.add_typer(lineage.records_app, name="records")
app.add_typer(assets.app, name="assets")
app.add_typer(weights.app, name="weights")
app.command("export-faces")(score.export_faces)
app.command("score")(score.score)
app.command("plan")(params.list_jobs)
app.command("anonymize")(photographs.anonymize)
app.command("recover")(photographs.recover)
app.command("faces")(faces.faces)
app.command("matrix")(params.list_cells)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command. Ends the process: 0, 1 (a mistake, or no result), 2 (unknown option), 3 (not every file has one),
    128 and the number of a signal.
    """
    words = [_at_home(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    _print_every_name()
    process.keep_freed_memory()
    gc.set_threshold(100_000, 50, 100)  # searching what is imported for garbage takes 0.3 to 0.9 s
    try:
        _check_sources()
        with explain_missing_packages(), seeding.explain_nondeterminism(), common.end_orderly():
            app(words)
    except (MasqueradeError, OSError) as error:
        if "--debug" in words:
            raise
        common.print_error(error)
        sys.exit(1)
    sys.exit(0)


def _at_home(word: str) -> str:
    """The word with the home folder in place of ``~``, also in ``--output=~/x``, where a shell leaves it."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{option}{equals}{files.expand_home(value)}" if value.startswith("~") else word


def _print_every_name() -> None:
    """Lets the terminal show an escape for what it cannot show, such as the name of a folder that is not UTF-8."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _check_sources() -> None:
    """Raises MasqueradeError if this folder is a working copy, and the code that runs is that of another one."""
    here, running = Path("src/masquerade"), Path(__file__).parents[1]
    if here.is_dir() and not here.samefile(running):
        raise MasqueradeError(
            f"This is a working copy, but the code that runs is {running}: its .venv was copied or belongs to another "
            "one. Run `make environment` here, or `export PYTHONPATH=src` to use that environment with this code."
        )


def _print_version(value: bool) -> None:
    if value:
        from masquerade.params import repository

        typer.echo(f"masquerade {repository.read_version()} (commit {repository.read_commit()})")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and the commit, and exit."
        ),
    ] = False,
) -> None:
    """Anonymize faces with re-implemented published methods, and compare these methods."""


@app.command("doctor")
def examine(scale: common.Scale = None, root: common.AnyRoot = Path()) -> None:
    """List what is installed on this machine, what is missing, and what to do about it."""
    from masquerade.cli import doctor
    from masquerade.params import repository

    table = Table("", "what", "state", "what to do", title="masquerade doctor")
    checks = doctor.examine(repository.find_repository() if root == Path() else root, scale)
    for check in checks:
        common.add_row(table, check.word, check.name, check.state, check.remedy, style=check.style)
    common.print_table(table)
    if any(check.essential and not check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def export(
    output: Annotated[Path, typer.Argument(metavar="crate", help="The .zip file to write.")],
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Add the files of data/ and checkpoints/, except those of private datasets."),
    ] = False,
    scale: common.Scale = None,
    root: common.Root = Path(),
) -> None:
    """Export a build as a Workflow Run RO-Crate, with its jobs, code, parameters, results, and all licenses."""
    from masquerade.lineage import crate

    jobs = crate.export(output, root, scale, with_data)
    typer.echo(
        f"{output}: {jobs} jobs. Its figures show faces, also original ones: look at them before you publish it."
    )
