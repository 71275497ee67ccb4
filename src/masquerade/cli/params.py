"""The commands ``masquerade params show | check | schema | template``, ``matrix`` and ``plan``."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.cli import common
from masquerade.cli.common import Json, Root, Scale

app = typer.Typer(
    no_args_is_help=True, help="Show and check params.yaml, print its schema, and print the block of a new method."
)


@app.command()
def show(
    scale: Scale = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin",
            help="A dotted key, such as `methods.fit`. The value, or each value below it, is then printed with "
            "the file that sets it. Default: all parameters are printed.",
        ),
    ] = None,
    root: Root = Path(),
) -> None:
    """Print all parameters that take effect at a scale, as YAML."""
    from masquerade.params import loading, overlays

    if origin is None:
        typer.echo(overlays.format_yaml(loading.load(root, scale).tree), nl=False)
        return
    for key, values in loading.find_origins(origin, root, scale).items():
        (file, value), *replaced = ((file, json.dumps(value, ensure_ascii=False)) for file, value in values.items())
        before = ", ".join(f"{value} ({file})" for file, value in replaced)
        typer.echo(f"{key}: {value}  # {file}" + (f", in place of {before}" if before else ""))


@app.command()
def check(root: Root = Path()) -> None:
    """Check params.yaml together with the overlay of every scale."""
    from masquerade.params import loading, matrix
    from masquerade.pipeline import pretrained_networks

    for scale in loading.list_scales(root):
        parameters = loading.load(root, scale)
        problem = pretrained_networks.find_package_problem(parameters)
        typer.echo(f"{scale}: valid, {len(matrix.plan_cells(parameters))} cells{f'. {problem}' if problem else ''}")


@app.command("schema")
def print_schema(
    output: Annotated[
        Path | None, typer.Option("--output", help="The file to write. Default: the schema is printed.")
    ] = None,
) -> None:
    """Print the JSON schema of params.yaml, with which an editor can complete and check it."""
    from masquerade.params import model

    if output is None:
        typer.echo(model.format_schema(), nl=False)
    else:
        output.write_text(model.format_schema(), encoding="utf-8")


@app.command()
def template(
    method: Annotated[str, typer.Argument(help="The name of a module or folder of `src/masquerade/methods/`.")],
) -> None:
    """Print the block of params.yaml for a new method, with the description of each parameter."""
    from masquerade.params import model

    typer.echo(model.format_template(method), nl=False)


def list_cells(
    as_json: Json = False,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """List every combination of dataset, method, variant and seed, with the reason if it does not run."""
    from masquerade.papers.cautions import mark_title
    from masquerade.params import loading
    from masquerade.params.matrix import plan_cells as planned

    parameters = loading.load(root, scale)
    cells = planned(parameters)
    if as_json:
        typer.echo(json.dumps([vars(cell) for cell in cells]))
        return
    table = Table("dataset", "method", "variant", "seed", "runs", title=f"{len(cells)} cells")
    for cell in cells:
        method = mark_title(cell.method, cell.method, parameters.latent_stand_ins)
        common.add_row(table, cell.dataset, method, cell.variant, str(cell.seed), cell.reason or "yes")
    common.print_table(table)


def list_jobs(
    scale: Scale = None,
    as_json: Json = False,
    root: Root = Path(),
) -> None:
    """List the jobs of a scale without running them, with the GPU hours of those that were measured on a GPU."""
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
