"""The commands ``masquerade records save | merge | clean``."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The records of a build in git: write, merge, and clean them.")


@app.command()
def save(
    partial: Annotated[bool, typer.Option("--partial", help="Record a build that is not finished, too.")] = False,
) -> None:
    """Record the build in git and DVC. `snakemake all` does so when it ends."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    typer.echo(
        f"{versioning.record_build(partial)} jobs recorded. Next: `git add dvc.lock records`, commit, `dvc push`."
    )


@app.command()
def merge() -> None:
    """After `git merge` of two builds: put the records and files of both together. The other side must have pushed."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    typer.echo(f"{versioning.merge_builds()} files are theirs. Next: `snakemake all` makes what depends on both sides; "
               "then `git add dvc.lock records` and commit.")  # fmt: skip


@app.command()
def clean(
    delete: Annotated[bool, typer.Option("--delete", help="Delete the files.")] = False,
) -> None:
    """List the files of the scale that no job makes, such as those of a removed variant."""
    from masquerade.lineage import versioning
    from masquerade.params import repository

    repository.require_clone(Path())
    for path in versioning.list_orphans():
        typer.echo(path)
        if delete:
            Path(path).unlink()
