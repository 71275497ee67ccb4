"""The commands ``masquerade weights list | export | adopt | check``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.cli import common
from masquerade.cli.common import Root

app = typer.Typer(no_args_is_help=True, help="The networks of weights/: list, export, adopt and check them.")

Scale = Annotated[
    str | None, typer.Option("--scale", help="The scale of the finished build. Default: `scale:` in params.yaml.")
]
SMALL_LOSS = 0.01
"""A figure that rounding changes by more than this share of its value is shown in yellow."""


@app.command("list")
def list_weights(root: Root = Path()) -> None:
    """List every network of weights/ with its size and origin."""
    from masquerade.training import cards

    table = Table("name", "what", "MB", "scale", "hours", "commit", "terms", title=f"{cards.FOLDER}/")
    for name in cards.names(root):
        card = cards.read(name, root)
        size, hours = f"{card.size / 1e6:.2f}", f"{card.hours:.2f}"
        common.add_row(table, name, card.what, size, card.scale, hours, card.commit[:12], card.terms)
    common.print_table(table)


@app.command()
def export(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Networks. Default: all backbones and methods; ablations and the set of fakes are named."),
    ] = None,
    measure: Annotated[
        bool, typer.Option(help="Load the backbones back and measure their quality after rounding.")
    ] = True,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Write the networks of a finished build into weights/, as 16-bit floats with a card each."""
    from masquerade.params import loading
    from masquerade.pipeline import weights_export
    from masquerade.training import cards

    exported = weights_export.export(root, scale, names or ())
    for one in exported:
        typer.echo(
            f"{cards.weights_path(one.card.name)}: {one.card.size / 1e6:.2f} MB, {one.card.numbers} numbers, rounding "
            f"error {one.loss:.1e}"
        )
    total = sum(cards.read(name, root).size for name in cards.names(root))
    typer.echo(f"{cards.FOLDER}/: {total / 1e6:.1f} MB of at most {cards.LIMIT / 1e6:g} MB.")
    if measure and any(one.trained.room == "backbones" for one in exported):
        table = Table("backbone", "figure", "checkpoint", "16 bit", "change", title="Figures that the rounding changes")
        losses = list(weights_export.rounding_losses(exported, loading.load(root, scale), root))
        for name, figure, before, after in losses:
            if before != after:
                style = "yellow" if abs(after - before) > SMALL_LOSS * abs(before) else ""
                cells = (name, figure, f"{before:.5g}", f"{after:.5g}", f"{after - before:+.2g}")
                common.add_row(table, *cells, style=style)
        common.print_table(table)
        typer.echo(f"The other {len(losses) - table.row_count} of {len(losses)} figures of the backbones are the same.")


@app.command()
def adopt(
    scale: Annotated[str | None, typer.Option("--scale", help="Default: `scale:` in params.yaml.")] = None,
    root: Root = Path(),
) -> None:
    """Print what the overlay of a scale must set so that it adopts every network of weights/."""
    from masquerade.params import loading, overlays
    from masquerade.pipeline import adopted_networks

    tree = adopted_networks.edit(loading.load(root, scale), root)
    typer.echo(overlays.format_yaml(tree, flow=None, width=118), nl=False)


@app.command()
def check(root: Root = Path()) -> None:
    """Read every file of weights/ again: its hash, and its card against the parameters. Ends with status 1 if not."""
    from masquerade.params import loading
    from masquerade.pipeline import trained_networks
    from masquerade.training import cards

    problems = []
    for name in cards.names(root):
        card = cards.checked(name, root)
        drifted = trained_networks.drift(card, loading.load(root, card.scale))
        typer.echo(f"{name}: {'the file of its card' if not drifted else 'other parameters now'}")
        problems += drifted
    for problem in problems:
        Console(stderr=True, soft_wrap=True).print(Text(problem, style="red"))
    if problems:
        raise typer.Exit(1)
