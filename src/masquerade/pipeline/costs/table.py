"""The plan as a table: what was counted, and the GPU hours at an assumed throughput."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from masquerade.pipeline.costs.step import Step

HOUR, TERA = 3600.0, 1e12
BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
HEAD = ("step", "what", "jobs", "units", "", "FLOP", "GPU h", "peak", "disk", "core h", "remark")
COUNTED = (
    "Counted: jobs and pictures, from the matrix; FLOPs of matrix products, convolutions and attention (a multiply-add "
    "is two), forwards and backwards, by running one training step or one batch of the pipeline's own code with these "
    "parameters on tensors without numbers; bytes of tensors that are alive at a time; bytes of checkpoints.",
    "Estimated: GPU hours = FLOPs / (peak of the data sheet x utilisation); the utilisation is an assumption: no step "
    "was measured on a GPU. Peak memory leaves out CUDA's context, workspaces and fragmentation. Disk: pictures x "
    "bytes of one PNG (a drawn face, or a photograph where the dataset is not drawn); measurements uncompressed. Core "
    "hours: judges and attackers that are no networks, measured on a few pictures on this machine.",
    "Left out: judging of backbones, sample pictures, metrics, tables, the page, waiting, and what is not computed by "
    "PyTorch. What a training does before its first step is counted once a training picture.",
)


@dataclass(frozen=True)
class Throughput:
    """``peak``: TFLOP/s of the GPU called ``name``. ``utilisation``: the share of the peak that is reached, 0 .. 1."""

    name: str
    peak: float
    utilisation: float

    def hours(self, flops: float) -> float:
        return flops / (self.peak * TERA * self.utilisation) / HOUR

    def __str__(self) -> str:
        return f"{self.name}, {self.peak:g} TFLOP/s x {self.utilisation:g}"


def total(steps: Sequence[Step]) -> Step:
    """The sum of all steps. Its peak is the largest one."""
    sums: dict[str, Any] = {
        name: sum(getattr(step, name) for step in steps) for name in ("jobs", "flops", "disk", "processor")
    }
    return Step("all", "", units=0, unit="", peak=max((step.peak for step in steps), default=0), **sums)


def rows(steps: Sequence[Step], at: Throughput) -> list[tuple[str, ...]]:
    """One row of text for each step and one for their sum, with the columns of HEAD."""
    return [
        (
            step.rule, step.name, f"{step.jobs:,}", f"{step.units:,}" if step.units else "", step.unit,
            _scaled(step.flops, 1000, ("", "k", "M", "G", "T", "P", "E")), _number(at.hours(step.flops)),
            _scaled(step.peak, 1024, BYTES), _scaled(step.disk, 1024, BYTES), _number(step.processor / HOUR), step.note,
        )
        for step in (*steps, total(steps))
    ]  # fmt: skip


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    """Three digits and a unit; '' for zero."""
    power = 0
    while value >= base and power < len(units) - 1:
        value, power = value / base, power + 1
    return f"{_number(value)} {units[power]}".strip() if value else ""


def _number(value: float) -> str:
    """Three digits; '' for zero."""
    if not value:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 else "< 0.001"


def heading(scale: str, at: Throughput) -> str:
    """The title of the plan."""
    return f"What scale {scale} costs ({at})"


def markdown(scale: str, steps: Sequence[Step], at: Throughput) -> str:
    """The plan as a Markdown document."""
    lines = [f"# {heading(scale, at)}", "", *(f"{text}\n" for text in COUNTED)]
    lines += [f"| {' | '.join(HEAD)} |", f"|---|---|{'---:|' * 2}---|{'---:|' * 5}---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows(steps, at)]
    return "\n".join(lines) + "\n"


def as_json(scale: str, steps: Sequence[Step], at: Throughput) -> str:
    """The plan as JSON with plain numbers: FLOPs, bytes, seconds of a core, GPU hours."""
    rows = [asdict(step) | {"gpu_hours": at.hours(step.flops)} for step in (*steps, total(steps))]
    assumed = {"gpu": at.name, "peak_tflops": at.peak, "utilisation": at.utilisation}
    return json.dumps({"scale": scale, "assumed": assumed, "steps": rows[:-1], "all": rows[-1]}, indent=1)
