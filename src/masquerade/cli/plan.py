"""The command ``masquerade plan``: the jobs of a scale, and the GPU hours of those that were measured."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.cli import common
from masquerade.cli.common import Root


def plan(
    scale: Annotated[str | None, typer.Option(help="The scale. Default: `scale:` in params.yaml.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    root: Root = Path(),
) -> None:
    """List the jobs of a scale, with the GPU hours of those that were measured (benchmarks/gpu.md). Runs no job."""
    from masquerade.params import loading
    from masquerade.pipeline import plan as planning

    gpu, measurements = planning.read_measurements(root)
    parameters = loading.load(root, scale)
    work = planning.Plan(parameters, measurements).work()
    if as_json:
        typer.echo(planning.as_json(parameters.scale, gpu, work))
        return
    table = Table(title=Text(f"The jobs of scale {parameters.scale}"), box=SIMPLE_HEAD)
    for title in ("step", "jobs", "units", "seconds a unit", "GPU hours", "remark"):
        table.add_column(title, justify="left" if title in ("step", "remark") else "right", no_wrap=True)
    for row in work:
        measured = ("", "") if row.hours is None else (f"{row.seconds:g}", f"{row.hours:,.1f}")
        units = f"{row.units:,} {row.unit}" if row.units else ""
        common.add_row(table, f"{row.rule} {row.name}".strip(), f"{row.jobs:,}", units, *measured, row.note)
    common.print_table(table)
    hours = [row.hours for row in work if row.hours is not None]
    text = (
        f"Measured on {gpu} ({planning.PAGE}): {len(hours)} of {len(work)} rows, {sum(hours):,.1f} GPU hours. The other"
        " rows were never measured on a GPU, and no hours are estimated for them."
    )
    Console(soft_wrap=True).print(Text(f"{sum(row.jobs for row in work):,} jobs. {text}", style="dim"))
