"""The commands ``masquerade lineage show | diff | verify`` and ``masquerade records save | merge | clean``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from masquerade.cli.common import Json, Root, Scale

app = typer.Typer(
    no_args_is_help=True, help="Trace a number back to the raw data, explain why it changed, and verify its files."
)

Address = Annotated[
    str,
    typer.Argument(
        help="The address: `PAPER/ITEM` for a table, `PAPER/ITEM:METHOD\\[/VARIANT]\\[:COLUMN\\[:DATASET]]` "
        "for a row or one of its values, `claims:PAPER:CLAIM` for a claim, or the path of a file of the build."
    ),
]


@app.command()
def show(
    address: Address,
    as_json: Json = False,
    full: Annotated[bool, typer.Option("--full", help="Print every parameter with its whole value.")] = False,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Print where a number comes from: metrics, measurements, anonymized faces, checkpoint, training, raw data."""
    from masquerade.lineage import chain, descriptions, publishing
    from masquerade.lineage.address import resolve
    from masquerade.lineage.history import read_working_copy

    history = read_working_copy(root, scale)
    resolved = resolve(address, history)
    links = chain.follow(history, resolved)
    runs = publishing.find_runs(link.job.circumstances["run"] for link in links if link.job and link.job.circumstances)
    if as_json:
        typer.echo(json.dumps(chain.chain_to_json(resolved, history.scale, links, runs), indent=1, ensure_ascii=False))
    else:
        _print(descriptions.describe_chain(resolved, history.scale, links, runs, full))


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help="The earlier state: a commit, branch or tag.")],
    new: Annotated[str, typer.Argument(help="The later state. Default: the working copy.")] = "",
    cell: Annotated[
        str, typer.Option("--cell", help="The address of the number, written as for `lineage show`. It is required.")
    ] = "",
    as_json: Json = False,
    root: Root = Path(),
) -> None:
    """Print which parameter, code, data or environment made a number change between two commits."""
    from dataclasses import asdict

    from masquerade.lineage import descriptions, difference, history
    from masquerade.lineage.history import LineageError, read_working_copy

    if not cell:
        raise LineageError(
            "--cell is missing. Give an address, as for `lineage show`: PAPER/ITEM:METHOD[/VARIANT][:COLUMN[:DATASET]]."
        )
    later = history.read_revision(new, root) if new else read_working_copy(root)
    compared = difference.compare(history.read_revision(old, root), later, cell)
    if as_json:
        typer.echo(json.dumps(asdict(compared), indent=1, ensure_ascii=False))
    else:
        _print(descriptions.describe_difference(compared))


@app.command()
def verify(
    every: Annotated[
        bool, typer.Option("--all", help="Print every broken link instead of the first one only.")
    ] = False,
    as_json: Json = False,
    root: Root = Path(),
) -> None:
    """Compute every hash again, and print the first broken link. The exit status is then 1."""
    from dataclasses import asdict

    from masquerade.lineage import descriptions
    from masquerade.lineage import verify as checking

    verdict = checking.verify(root)
    if as_json:
        typer.echo(json.dumps(asdict(verdict), indent=1, ensure_ascii=False))
    else:
        _print(descriptions.describe_verdict(verdict, every))
    if verdict.breaks:
        raise typer.Exit(1)


def _print(lines: Iterable[Text]) -> None:
    console = Console(soft_wrap=True)
    for line in lines:
        console.print(line)


records_app = typer.Typer(no_args_is_help=True, help="Write, merge and clean the records of a build, which git keeps.")


@records_app.command()
def save(
    partial: Annotated[bool, typer.Option("--partial", help="Record a build even if it is not finished.")] = False,
) -> None:
    """Record the build for git and DVC. `snakemake all` does this when it ends."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    typer.echo(
        f"{versioning.record_build(partial)} jobs recorded. Next: `git add dvc.lock records`, commit, `dvc push`."
    )


@records_app.command()
def merge() -> None:
    """Combine the records and files of two builds after `git merge`. The other side must have run `dvc push`."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    typer.echo(f"{versioning.merge_builds()} files are theirs. Next: `snakemake all` makes what depends on both sides; "
               "then `git add dvc.lock records` and commit.")  # fmt: skip


@records_app.command()
def clean(
    delete: Annotated[bool, typer.Option("--delete", help="Delete the listed files.")] = False,
) -> None:
    """List the files of the scale that no job writes any more, such as those of a removed variant."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    for path in versioning.list_orphans():
        typer.echo(path)
        if delete:
            Path(path).unlink()
