"""``masquerade plan``: what the matrix of a scale costs."""

import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from masquerade.plan.gpus import GPUS, gpu

WIDE = 140
"""Columns of a table that goes into a file."""


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
        _show(table.heading(parameters.scale, throughput), table.rows(steps, throughput), table.COUNTED)


def _show(heading: str, rows: Sequence[Sequence[str]], explained: Sequence[str]) -> None:
    """A table that stays whole where nobody looks at a terminal, with the remarks below it."""
    shown = Table(title=heading, box=SIMPLE_HEAD)
    for title in ("step", "jobs", "units", "FLOP", "GPU h", "peak", "disk", "core h"):
        shown.add_column(title, justify="left" if title == "step" else "right", no_wrap=True)
    for number, (rule, what, jobs, units, unit, *costs, _) in enumerate(rows, 1):
        cells = (f"{rule} {what}".strip(), jobs, f"{units} {unit}".strip(), *costs)
        shown.add_row(*map(Text, cells), end_section=number == len(rows) - 1)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    console.print(shown)
    remarks: dict[str, list[str]] = {}
    for rule, what, *_, remark in rows:
        if remark:
            remarks.setdefault(remark, []).append(f"{rule} {what}".strip())
    for remark, steps in remarks.items():
        console.print(Text(f"{', '.join(dict.fromkeys(steps))}: {remark}"))
    for text in explained:
        console.print(Text(f"\n{text}", style="dim"))
