"""The command ``masquerade plan``: the cost of the matrix of a scale."""

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

from masquerade.cli import tables
from masquerade.cli.clones import Root
from masquerade.pipeline.costs.gpus import GPUS, gpu


class Precision(StrEnum):
    """The number format of matrix products."""

    tf32 = "tf32"
    fp32 = "fp32"


class Form(StrEnum):
    """The output format of the plan."""

    table = "table"
    markdown = "markdown"


def plan(
    scale: Annotated[str | None, typer.Option(help="The scale. Default: `scale:` in params.yaml.")] = None,
    name: Annotated[str, typer.Option("--gpu", help=f"The GPU: {', '.join(GPUS)}.")] = "a100",
    precision: Annotated[Precision, typer.Option(help="The number format of its peak.")] = Precision.tf32,
    peak: Annotated[float | None, typer.Option(min=0.001, help="The peak of another GPU, in TFLOP/s.")] = None,
    utilization: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1.0,
            help="The share of the peak that is reached. Default: benchmarks/gpu.md, or 0.2.",
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="The output format.")] = Form.table,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    root: Root = Path(),
) -> None:
    """Estimate the cost of a scale: jobs, FLOPs, GPU hours, memory, disk. No job is run and no file is fetched."""
    from masquerade.params import loading
    from masquerade.pipeline.costs import measured, table
    from masquerade.pipeline.costs.estimate import Estimate

    card = gpu(name)
    throughput = table.Throughput(
        card.title if peak is None else "a GPU", getattr(card, precision.value) if peak is None else peak, utilization,
        measured.read(root) if precision is Precision.tf32 else None, card.peaks if peak is None else {},
    )  # fmt: skip
    parameters = loading.load(root, scale)
    messages = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place, messages.status("Counting") as status:
        estimate = Estimate(parameters, Path(place), root, lambda what: status.update(f"Counting: {what}"))
        steps = estimate.steps()
    if as_json:
        typer.echo(table.as_json(parameters.scale, steps, throughput))
    elif form is Form.markdown:
        typer.echo(table.markdown(parameters.scale, steps, throughput), nl=False)
    else:
        _print(
            table.heading(parameters.scale, throughput), table.rows(steps, throughput), table.explanations(throughput)
        )


def _print(heading: str, rows: Sequence[Sequence[str]], explanations: Sequence[str]) -> None:
    """Print the table with its remarks below."""
    output = Table(title=Text(heading), box=SIMPLE_HEAD)
    for title in ("step", "jobs", "units", "FLOP", "GPU h", "peak", "disk", "core h"):
        output.add_column(title, justify="left" if title == "step" else "right", no_wrap=True)
    for number, (rule, what, jobs, units, unit, *costs, _) in enumerate(rows, 1):
        cells = (f"{rule} {what}".strip(), jobs, f"{units} {unit}".strip(), *costs)
        tables.add_row(output, *cells, end_section=number == len(rows) - 1)
    tables.print_table(output)
    console = Console(soft_wrap=True)
    remarks: dict[str, list[str]] = {}
    for rule, what, *_, remark in rows:
        if remark:
            remarks.setdefault(remark, []).append(f"{rule} {what}".strip())
    for remark, steps in remarks.items():
        console.print(Text(f"{', '.join(dict.fromkeys(steps))}: {remark}"))
    for text in explanations:
        console.print(Text(f"\n{text}", style="dim"))
