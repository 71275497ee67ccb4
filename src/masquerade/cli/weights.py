"""The commands ``masquerade weights list | export | check``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from masquerade.cli import common
from masquerade.cli.common import Root, Scale

app = typer.Typer(no_args_is_help=True, help="List, export and check the trained networks of the folder weights/.")


@app.command("list")
def list_weights(root: Root = Path()) -> None:
    """List every network of weights/ with its size, its origin and its terms of use."""
    from masquerade.training import cards

    table = Table("name", "what", "MB", "scale", "hours", "commit", "terms", title=f"{cards.FOLDER}/")
    for name in cards.list_names(root):
        card = cards.read_card(name, root)
        size, hours = f"{card.size / 1e6:.2f}", f"{card.hours:.2f}"
        common.add_row(table, name, card.what, size, card.scale, hours, card.commit[:12], card.terms)
    common.print_table(table)


@app.command()
def export(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="The names of networks. Ablations and the set of fakes are exported only if they are named. "
            "Default: all backbones and methods."
        ),
    ] = None,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Write the networks of a finished build into weights/, as 16-bit floats, each with a model card."""
    from masquerade.pipeline import weights_export
    from masquerade.training import cards

    for card, error in weights_export.export(root, scale, names or ()):
        typer.echo(
            f"{cards.weights_path(card.name)}: {card.size / 1e6:.2f} MB, {card.numbers} numbers, rounding error "
            f"{error:.1e}"
        )
    total = sum(cards.read_card(name, root).size for name in cards.list_names(root))
    typer.echo(f"{cards.FOLDER}/: {total / 1e6:.1f} MB of at most {cards.LIMIT / 1e6:g} MB.")


@app.command()
def check(root: Root = Path()) -> None:
    """Compare each network with its hash, and its model card with the parameters. The status is 1 if one differs."""
    from masquerade.params import loading
    from masquerade.pipeline import weights_export
    from masquerade.training import cards

    problems = []
    for name in cards.list_names(root):
        card = cards.check_bytes(name, root)
        drift = weights_export.find_drift(card, loading.load(root, card.scale))
        typer.echo(f"{name}: {'other parameters now' if drift else 'the file of its card'}")
        problems += drift
    for problem in problems:
        common.print_error(problem)
    if problems:
        raise typer.Exit(1)
