"""``masquerade matrix``: every cell, and why some of them do not run."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from masquerade.cli import clones, tables

Scale = Annotated[
    str | None, typer.Option("--scale", help="The scale of the checkpoints. Default: `scale:` in params.yaml.")
]


def list_cells(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    scale: Scale = None,
    root: clones.Root = Path(),
) -> None:
    """List every cell (dataset, method, variant, seed), with the reason for each cell that does not run."""
    from masquerade.papers.latent_stand_ins import titled
    from masquerade.params import loading
    from masquerade.params.matrix import plan_cells as planned

    parameters = loading.load(root, scale)
    cells = planned(parameters)
    if as_json:
        typer.echo(json.dumps([vars(cell) for cell in cells]))
        return
    table = Table("dataset", "method", "variant", "seed", "runs", title=f"{len(cells)} cells")
    for cell in cells:
        method = titled(cell.method, cell.method, parameters.latent_stand_ins)
        tables.add_row(table, cell.dataset, method, cell.variant, str(cell.seed), cell.reason or "yes")
    tables.print_table(table)
