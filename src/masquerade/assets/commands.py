"""The command line: ``masquerade assets list | fetch | verify | place``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.assets import FOLDER, LOCK, Asset, checking, registry
from masquerade.errors import MasqueradeError

app = typer.Typer(
    no_args_is_help=True, help="Weights and datasets from outside: what they are, where they come from, whether intact."
)

Root = Annotated[Path, typer.Option("--root", help="The repository: assets/ and assets.lock.yaml.")]
Roles = Annotated[list[str], typer.Argument(help="Names of `masquerade assets list`.")]
STYLES = {
    "there": "green", "ok": "green", "recorded": "cyan", "rehearsal": "magenta", "missing": "yellow",
    "needs a form": "yellow", "unrecorded": "red", "altered": "bold red",
}  # fmt: skip


@app.command("list")
def listed(root: Root = Path()) -> None:
    """Show every role: what it is, how large, under which licence, and whether it is there."""
    table = Table("role", "what", "size", "licence", "state", title=f"files from outside ({FOLDER}/)")
    for role, asset in registry().items():
        word = _state(role, asset, root)
        state = Text(word, style=STYLES[word])
        table.add_row(Text(role), Text(asset.title), Text(_size(asset)), Text(asset.licence), state)
    Console().print(table)


@app.command()
def fetch(roles: Roles, root: Root = Path()) -> None:
    """Fetch what may be fetched without a form; say what a person has to do for the rest, and end with status 1."""
    from masquerade.assets import admitting

    console = Console(stderr=True, soft_wrap=True)
    failed = False
    for role in roles:
        try:
            came = admitting.fetch(role, lambda told: console.print(Text(told)), root)
            typer.echo(f"{role}: {'fetched' if came else 'there already'}, {root / checking.path(role)}")
        except MasqueradeError as error:
            failed = True
            console.print(Text(f"{role}: {error}", style="red"))
    if failed:
        raise typer.Exit(1)


@app.command()
def verify(
    roles: Annotated[list[str] | None, typer.Argument(help="Which; all that are there if not given.")] = None,
    root: Root = Path(),
) -> None:
    """Read every byte again and compare; record what is seen for the first time. Status 1 where something is wrong."""
    from masquerade.assets.verifying import verify as verified

    asked = roles or [role for role in registry() if next(checking.present(role, root), None)]
    if not asked:
        typer.echo(f"Nothing lies in {root / FOLDER} yet: `masquerade assets list`, `masquerade assets fetch ROLE`.")
        return
    console, bad = Console(soft_wrap=True), False
    for role in asked:
        for finding in verified(role, root):
            bad |= not finding.ok
            word = Text(f"{finding.word:<9}", style=STYLES[finding.word])
            console.print(word, Text(f"{finding.role}/{finding.name}: {finding.told}"))
    if bad:
        raise typer.Exit(1)


@app.command()
def place(
    file: Annotated[Path, typer.Argument(help="The file, or the published archive that holds it.")],
    role: Annotated[str, typer.Argument(help="What it is: a name of `masquerade assets list`.")],
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="It only plays the part: it is not held to what is published.")
    ] = False,
    root: Root = Path(),
) -> None:
    """Copy a file that you have to its place, after a check; it is recorded in assets.lock.yaml."""
    from masquerade.assets import admitting

    target = admitting.place(file, role, rehearsal, typer.echo, root)
    typer.echo(f"{target}. Commit {LOCK}, so that everybody is held to this file.")


def _state(role: str, asset: Asset, root: Path) -> str:
    word = checking.state(role, root)
    return "needs a form" if word == "missing" and asset.steps else word


def _size(asset: Asset) -> str:
    sizes = [file.size for file in asset.parts]
    return f"{sum(sizes) / 1e6:.0f} MB" if sizes and all(sizes) and not asset.trees else asset.roughly or "?"
