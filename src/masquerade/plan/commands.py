"""``masquerade plan``: what the matrix of a scale costs."""

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.plan.gpus import GPUS, gpu


class Precision(StrEnum):
    """What matrix products are computed in."""

    tf32 = "tf32"
    fp32 = "fp32"


class Form(StrEnum):
    """How the plan is printed."""

    table = "table"
    markdown = "markdown"


def plan(
    scale: Annotated[str | None, typer.Option(help="Of which scale; default: `scale:` of params.yaml.")] = None,
    name: Annotated[str, typer.Option("--gpu", help=f"Whose hours: {', '.join(GPUS)}.")] = "a100",
    precision: Annotated[Precision, typer.Option(help="In which its peak is taken.")] = Precision.tf32,
    peak: Annotated[float | None, typer.Option(min=0.001, help="TFLOP/s of another GPU.")] = None,
    utilisation: Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of the peak that is reached.")] = 0.2,
    form: Annotated[Form, typer.Option("--format", help="How it is printed.")] = Form.table,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    root: Annotated[Path, typer.Option("--root", help="The repository: params.yaml, data/.")] = Path(),
) -> None:
    """Say what the matrix of a scale costs: jobs, FLOPs, GPU hours, memory, disk. Nothing is run, read or fetched."""
    from masquerade import params
    from masquerade.plan import table
    from masquerade.plan.costs import Costs

    card = gpu(name)
    throughput = table.Throughput(
        card.title if peak is None else "a GPU", getattr(card, precision.value) if peak is None else peak, utilisation
    )
    parameters = params.load(root, scale)
    messages = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place, messages.status("Counting") as status:
        costs = Costs(parameters, Path(place), root, lambda what: status.update(f"Counting: {what}"))
        steps = costs.steps()
    if as_json:
        typer.echo(table.as_json(parameters.scale, steps, throughput))
    elif form is Form.markdown:
        typer.echo(table.markdown(parameters.scale, steps, throughput), nl=False)
    else:
        shown = Table(title=table.heading(parameters.scale, throughput), caption="\n".join(table.COUNTED))
        for title in table.HEAD:
            shown.add_column(title, justify="left" if title in ("step", "what", "", "remark") else "right")
        for row in table.rows(steps, throughput):
            shown.add_row(*map(Text, row))
        Console().print(shown)
