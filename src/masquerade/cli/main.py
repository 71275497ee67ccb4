"""The program ``masquerade``: its options, and the commands that have no module of their own.

A mistake of the user gets one paragraph on stderr and status 1; ``masquerade --debug ...`` shows its traceback. Keys
come from a file or a prompt, never from the command line, and appear in no log and no report.
"""

import gc
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.cli import assets, common, faces, imported, lineage, params, plan, weights
from masquerade.core import files, process, seeding
from masquerade.core.errors import MasqueradeError, explain_missing_packages

if TYPE_CHECKING:
    from masquerade.pipeline.photographs.anonymizer import Anonymizer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Face anonymization, measured."
)
app.add_typer(params.app, name="params")
app.add_typer(lineage.app, name="lineage")
app.add_typer(lineage.records_app, name="records")
app.add_typer(assets.app, name="assets")
app.add_typer(weights.app, name="weights")
app.command("export-faces")(imported.export_faces)
app.command("import-method")(imported.import_method)
app.command("plan")(plan.plan)
app.command("faces")(faces.faces)
app.command("matrix")(params.list_cells)


SeveralPeople = Literal["refuse", "largest", "all"]
"""The treatment of a photograph of several people."""
SmallFaces = Literal["hide", "refuse"]
"""The treatment of a face in a whole photograph that no method can draw."""
MethodName = Annotated[str, typer.Option("--method", help="An anonymizer: a block below `methods:` in params.yaml.")]
VariantName = Annotated[str | None, typer.Option("--variant", help="One of its variants. Default: the first.")]
Source = Annotated[Path, typer.Option("--input", help="The folder with the pictures, or one picture.", exists=True)]
Output = Annotated[Path, typer.Option("--output", help="The folder for the results and report.csv.")]
Scale = Annotated[
    str | None, typer.Option("--scale", help="The scale of the checkpoints. Default: `scale:` in params.yaml.")
]
PhotographScale = Annotated[
    str | None, typer.Option("--scale", help="The scale of the networks. Default: photo, if its networks are there.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")]
Root = Annotated[Path, typer.Option("--root", help="A clone. Default: the current folder, else what is installed.")]


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
        Console(stderr=True, soft_wrap=True).print(Text(str(error), style="red"))
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


def _print_version(wanted: bool) -> None:
    if wanted:
        from masquerade.params import repository

        typer.echo(f"masquerade {repository.read_version()} (commit {repository.read_commit()})")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print version and commit.")
    ] = False,
) -> None:
    """Face anonymization, measured."""


@app.command()
def anonymize(
    method: MethodName,
    pictures: Source,
    output: Output,
    variant: VariantName = None,
    faces: Annotated[
        SeveralPeople | None,
        typer.Option(help="What to do with a picture of several people. Default: refuse; with --photographs: all."),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--photographs", help="Also write whole photographs, with every face replaced in place.")
    ] = False,
    small: Annotated[
        SmallFaces | None,
        typer.Option(
            help="With --photographs: hide faces that are too small or cannot be cut out under coarse blocks, or "
            "refuse their photograph. Default: hide."
        ),
    ] = None,
    keep_recognizable: Annotated[
        bool, typer.Option("--keep-recognizable", help="Write results that dlib still takes for the person.")
    ] = False,
    hide: Annotated[str | None, typer.Option(help="Keywords to hide, between commas: identity,age.")] = None,
    keep: Annotated[str | None, typer.Option(help="Keywords to keep, between commas; '' for nothing.")] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Also write the generator's pictures of 1024 pixels, into large/.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="For experiments only: makes the result predictable.")] = None,
    key_file: common.KeyFile = None,
    salt: common.Salt = None,
    key_check: common.KeyCheck = None,
    scale: PhotographScale = None,
    overwrite: Overwrite = False,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on with a batch that was stopped.")] = False,
    root: Root = Path(),
) -> None:
    """Cut the faces out of photographs and anonymize them. Writes one PNG for each face, and report.csv.

    A result that dlib's face recognizer still takes for an original is not written. Status 0: every file has all its
    results. 3: some files have no result, or not all. 1: a mistake, or no result at all.
    """
    from masquerade.cli import outcome
    from masquerade.pipeline.photographs import batches, loading

    batches.check_output(output, pictures, overwrite, go_on)
    chosen = loading.load(
        method, variant, scale=scale, hide=_listed(hide), keep=_listed(keep), seed=seed, root=root, say=_warn
    )
    secret = common.read_key(key_file, confirm=True) if chosen.takes_key else None
    _announce(chosen, kept=seed is not None)
    with Console(stderr=True).status("") as status:
        batch = chosen.anonymize_folder(
            pictures, output, faces=faces, whole=whole, small=small,
            key=secret, salted=salt, checked=key_check, large=large, keep_recognizable=keep_recognizable,
            overwrite=overwrite, go_on=go_on, readers=batches.readers(pictures), progress=status.update,
        )  # fmt: skip
    outcome.summarize(batch.rows, output, chosen.title, batch.statement, "anonymized")


@app.command()
def recover(
    method: MethodName,
    pictures: Source,
    output: Output,
    variant: VariantName = None,
    originals: Annotated[
        Path | None,
        typer.Option(help="The original photographs, to say how near the result comes.", exists=True),
    ] = None,
    key_file: common.KeyFile = None,
    no_salt: common.NoSalt = False,
    scale: PhotographScale = None,
    overwrite: Overwrite = False,
    root: Root = Path(),
) -> None:
    """Recover faces that an invertible method anonymized, from the pictures and the key alone.

    A picture is refused if its salt is lost, if the key is wrong, or if something else anonymized it. Status 0: every
    file has all its results. 3: some files have no result, or not all. 1: a mistake, or no result at all.
    """
    from masquerade.cli import outcome
    from masquerade.pipeline import makers
    from masquerade.pipeline.photographs import batches, loading

    batches.check_output(output, pictures, overwrite)
    made = makers.of_folder(pictures)
    if made and made.method == method:
        scale, variant = scale or made.scale, variant or made.variant
    chosen = loading.load(method, variant, scale=scale, root=root, say=_warn)
    chosen.check_recovers()
    with Console(stderr=True).status("") as status:
        batch = chosen.recover_folder(
            pictures, output, key=common.read_key(key_file, confirm=False), originals=originals, no_salt=no_salt,
            overwrite=overwrite, progress=status.update,
        )  # fmt: skip
    outcome.summarize(batch.rows, output, chosen.title, {}, "recovered")


@app.command("doctor")
def examine(scale: Scale = None, root: Root = Path()) -> None:
    """List what is installed, what is missing, and what to do about it."""
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
    output: Annotated[Path, typer.Argument(metavar="crate", help="The .zip to write.")],
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Add the files of data/ and checkpoints/, without those of private datasets."),
    ] = False,
    scale: Scale = None,
    root: common.Root = Path(),
) -> None:
    """Export a run as a Workflow Run RO-Crate: its jobs, code, parameters, results, and all licenses."""
    from masquerade.lineage import crate

    jobs = crate.export(output, root, scale, with_data)
    typer.echo(
        f"{output}: {jobs} jobs. Its figures show faces, also original ones: look at them before you publish it."
    )


def _warn(text: str) -> None:
    """Shows a sentence that the user should read before the results."""
    Console(stderr=True, soft_wrap=True).print(Text(text, style="yellow"))


def _announce(chosen: "Anonymizer", kept: bool) -> None:
    """Shows what to know before the results: whether the seed is ``kept``, and the threshold."""
    errors = Console(stderr=True, soft_wrap=True)
    if not kept:
        errors.print("The randomness comes from the operating system and is not kept.", style="dim")
    limit = chosen.threshold
    errors.print(Text(f"Still recognized: distance up to {limit.distance:.3f}; {limit.origin}.", style="dim"))


def _listed(words: str | None) -> list[str] | None:
    """The words between commas. Returns None for None, and [] for an empty text."""
    return None if words is None else [word.strip() for word in words.split(",") if word.strip()]
