"""The plan as a table: what was counted, and the GPU hours at a measured or assumed throughput."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from masquerade.pipeline.costs.measured import PAGE, Measured
from masquerade.pipeline.costs.step import Step

HOUR, TERA = 3600.0, 1e12
BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
HEAD = ("step", "what", "jobs", "units", "", "FLOP", "GPU h", "peak", "disk", "core h", "remark")
ASSUMED = 0.2
"""The share of the peak that is reached, where none was measured or given."""
EXPLANATIONS = (
    "Counted: jobs and pictures, from the matrix; FLOPs of matrix products, convolutions and attention (a multiply-add "
    "is two), forwards and backwards, by running one training step or one batch of the pipeline's own code with these "
    "parameters on tensors without numbers; bytes of tensors that are alive at a time; bytes of checkpoints.",
    "Estimated: GPU hours = FLOPs / (peak of the data sheet x share of it that is reached). {share} Where `arithmetic` "
    "sets a precision, an unmeasured step has its peak; what channels last and compiling give is not estimated. Peak "
    "memory leaves "
    "out CUDA's context, workspaces and fragmentation. Disk: pictures x bytes of one PNG (a drawn face, or a "
    "photograph where the dataset is not drawn); measurements uncompressed. Core hours: judges and attackers that are "
    "no networks, measured on a few pictures on this machine.",
    "Left out: judging of backbones, sample pictures, metrics, tables, the page, waiting, and what is not computed by "
    "PyTorch. What a training does before its first step is counted once a training picture.",
)


@dataclass(frozen=True)
class Throughput:
    """``peak``: TFLOP/s of the GPU called ``name``. ``share``: the share of it that every step reaches, 0 .. 1.

    Without ``share``, a step has that which was ``measured``, or else the median of those. Without both: `ASSUMED`.
    ``peaks``: of precisions. A step whose precision is set, and whose share was not measured, has its peak.
    """

    name: str
    peak: float
    share: float | None = None
    measured: Measured | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def usual(self) -> float:
        """The share of a step that was not measured."""
        if self.share is not None:
            return self.share
        return self.measured.usual if self.measured else ASSUMED

    def hours(self, *steps: Step) -> float:
        """GPU hours of all jobs of these steps."""
        return sum(step.flops / (TERA * self._speed(step)) for step in steps) / HOUR

    def _speed(self, step: Step) -> float:
        """TFLOP/s."""
        rule = step.rule.partition("_")[0]  # anonymize_train and anonymize_attackers do the work of anonymize
        if self.share is None and self.measured and (rule, step.name) in self.measured.shares:
            return self.peak * self.measured.shares[rule, step.name]
        return self.peaks.get(step.precision, self.peak) * self.usual

    def expected(self, step: Step) -> str:
        """What the precision of a step is expected to give; '' if it is not set, or the GPU is not listed."""
        if step.precision not in self.peaks:
            return ""
        peak, times = self.peaks[step.precision], self.peaks[step.precision] / self.peaks["float32"]
        return f"{step.precision}: {_number(peak)} TFLOP/s at most, {times:.2g} times those of 32 bits"

    @property
    def source(self) -> str:
        """Where the shares come from, in a sentence."""
        if self.share is not None:
            return f"The share, {self.share:g}, was given."
        if self.measured is None:
            return f"The share, {ASSUMED:g}, is an assumption: no step was measured on a GPU."
        count, card = len(self.measured.shares), self.measured.card
        return f"Shares measured on {card} ({PAGE}): {count}; every other step has their median, {self.usual:g}."

    def __str__(self) -> str:
        return f"{self.name}, {self.peak:g} TFLOP/s x {self.usual:g}"


def explanations(at: Throughput) -> tuple[str, ...]:
    """What was counted, how hours are estimated, and what is left out."""
    return tuple(text.format(share=at.source) for text in EXPLANATIONS)


def total(steps: Sequence[Step]) -> Step:
    """The sum of all steps. Its peak is the largest one."""
    sums: dict[str, Any] = {
        name: sum(getattr(step, name) for step in steps) for name in ("jobs", "flops", "disk", "processor")
    }
    return Step("all", "", units=0, unit="", peak=max((step.peak for step in steps), default=0), **sums)


def rows(steps: Sequence[Step], at: Throughput) -> list[tuple[str, ...]]:
    """One row of text for each step and one for their sum, with the columns of HEAD."""
    every = [(step, at.hours(step)) for step in steps]
    return [
        (
            step.rule, step.name, f"{step.jobs:,}", f"{step.units:,}" if step.units else "", step.unit,
            _scaled(step.flops, 1000, ("", "k", "M", "G", "T", "P", "E")), _number(hours),
            _scaled(step.peak, 1024, BYTES), _scaled(step.disk, 1024, BYTES), _number(step.processor / HOUR),
            "; ".join(text for text in (step.note, at.expected(step)) if text),
        )
        for step, hours in (*every, (total(steps), at.hours(*steps)))
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
    lines = [f"# {heading(scale, at)}", "", *(f"{text}\n" for text in explanations(at))]
    lines += [f"| {' | '.join(HEAD)} |", f"|---|---|{'---:|' * 2}---|{'---:|' * 5}---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows(steps, at)]
    return "\n".join(lines) + "\n"


def as_json(scale: str, steps: Sequence[Step], at: Throughput) -> str:
    """The plan as JSON with plain numbers: FLOPs, bytes, seconds of a core, GPU hours."""
    rows = [asdict(step) | {"gpu_hours": at.hours(step)} for step in steps]
    whole = asdict(total(steps)) | {"gpu_hours": at.hours(*steps)}
    assumed = {"gpu": at.name, "peak_tflops": at.peak, "utilization": at.usual, "source": at.source}
    return json.dumps({"scale": scale, "assumed": assumed, "steps": rows, "all": whole}, indent=1)
