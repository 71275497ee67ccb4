"""The commands ``masquerade assets list | fetch | verify | place``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.cli import common
from masquerade.cli.common import Root
from masquerade.core.errors import MasqueradeError

if TYPE_CHECKING:
    from masquerade.assets import Asset

app = typer.Typer(
    no_args_is_help=True,
    help="List, download, verify and place the official weights and datasets, which come from outside the repository.",
)

Roles = Annotated[list[str], typer.Argument(help="One or more names that `masquerade assets list` prints.")]
STYLES = {
    "there": "green", "ok": "green", "recorded": "cyan", "rehearsal": "magenta", "missing": "yellow",
    "needs a form": "yellow", "unrecorded": "red", "altered": "bold red",
}  # fmt: skip


@app.command("list")
def list_assets(root: Root = Path()) -> None:
    """List every file with its role, title, size, license and state."""
    from masquerade.assets import FOLDER, registry

    table = Table("role", "what", "size", "license", "state", title=f"files from outside ({FOLDER}/)")
    for role, asset in registry().items():
        state = _describe_state(role, asset, root)
        common.add_row(table, role, asset.title, _format_size(asset), asset.license, Text(state, style=STYLES[state]))
    common.print_table(table)


@app.command()
def fetch(roles: Roles, root: Root = Path()) -> None:
    """Download files that need no form. For other files, print what you must do; the exit status is then 1."""
    from masquerade.assets import checking, installing

    failed = False
    for role in roles:
        try:
            fetched = installing.fetch(role, lambda text: common.print_error(text, ""), root)
            typer.echo(f"{role}: {'fetched' if fetched else 'there already'}, {root / checking.path(role)}")
        except MasqueradeError as error:
            failed = True
            common.print_error(f"{role}: {error}")
    if failed:
        raise typer.Exit(1)


@app.command()
def verify(
    roles: Annotated[
        list[str] | None, typer.Argument(help="The names of files. Default: all that are present.")
    ] = None,
    root: Root = Path(),
) -> None:
    """Compare every byte of the files with their records, and record new files. The status is 1 if one differs."""
    from masquerade.assets import FOLDER, checking, installing, registry

    selected = roles or [role for role in registry() if next(checking.present(role, root), None)]
    if not selected:
        typer.echo(f"Nothing lies in {root / FOLDER} yet: `masquerade assets list`, `masquerade assets fetch ROLE`.")
        return
    console, bad = Console(soft_wrap=True), False
    for role in selected:
        for finding in installing.verify(role, root):
            bad |= not finding.ok
            word = Text(f"{finding.state:<9}", style=STYLES[finding.state])
            console.print(word, Text(f"{finding.role}/{finding.name}: {finding.text}"))
    if bad:
        raise typer.Exit(1)


@app.command()
def place(
    file: Annotated[
        Path, typer.Argument(help="The file that you downloaded, or the published archive that contains it.")
    ],
    role: Annotated[str, typer.Argument(help="The name that `masquerade assets list` prints for the file.")],
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearsal", help="The file is a stand-in for a rehearsal, and is not compared with the published one."
        ),
    ] = False,
    root: Root = Path(),
) -> None:
    """Check a file that you have downloaded, copy it to its place, and record it in assets.lock.yaml."""
    from masquerade.assets import LOCK, installing

    target = installing.place(file, role, rehearsal, typer.echo, root)
    typer.echo(f"{target}. Commit {LOCK}: all others then need the same file.")


def _describe_state(role: str, asset: "Asset", root: Path) -> str:
    from masquerade.assets import checking

    word = checking.state(role, root)
    return "needs a form" if word == "missing" and asset.steps else word


def _format_size(asset: "Asset") -> str:
    sizes = [file.size for file in asset.parts]
    known_sizes = [size for size in sizes if size]
    complete = sizes and len(known_sizes) == len(sizes) and not asset.trees
    return f"{sum(known_sizes) / 1e6:.0f} MB" if complete else asset.roughly or "?"
