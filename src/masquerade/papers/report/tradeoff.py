"""Prepares the trade-off plots: privacy against utility, one point for each setting, better values up and right."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from masquerade.core import discovery
from masquerade.core.canvas import COLORS, FAINT
from masquerade.papers import figure_declarations
from masquerade.papers.context import Context
from masquerade.papers.declarations import Named, Table
from masquerade.papers.latent_stand_ins import titled
from masquerade.papers.measured import Cells
from masquerade.papers.report import variants
from masquerade.papers.report.variants import Knobs, Methods
from masquerade.papers.tradeoffs import Point, measured_point
from masquerade.params.matrix import Setting

PRIVACY = ("re_identification_rate", "protection_success_rate_at_far", "identity_distance", "attack_rank1_rate")
UTILITY = (
    "frechet_distance", "attribute_preservation_rate", "perceptual_distance", "detection_rate", "twin_landmark_error",
)  # fmt: skip
ATTACKERS = {"attack_rank1_rate": ("worst", "naive")}
"""Metric of attackers -> the part that is plotted, and the part of the hollow point that is joined to it."""
SHAPES = ("circle", "triangle", "square", "diamond")
WIDE, HIGH, LEFT, BELOW, PAD = 640, 400, 64, 52, 14
"""Of a plot, in units of its SVG: size, room for the labels of the axes, and room around the points."""


class Axis(figure_declarations.Axis):
    """The measure of one axis of the page."""

    unit: str
    naive: str
    """The part of the hollow points; '' if there are none."""

    @property
    def label(self) -> str:
        part = self.part.replace("worst", "strongest")
        details = ", ".join(filter(None, [part, f"by {self.judge.name}" if self.judge else ""]))
        return f"{self.title}{f' ({details})' if details else ''}"

    @property
    def hollow(self) -> "Axis | None":
        """The measure of the hollow points."""
        return self.model_copy(update={"part": self.naive}) if self.naive else None


@dataclass(frozen=True)
class Scale:
    """The places of values along an axis: ``low`` and ``high`` stand at its ``ends``."""

    low: float
    high: float
    ends: tuple[float, float]

    @classmethod
    def of(cls, values: Collection[float], axis: Axis, worst: float, best: float) -> "Scale":
        """The scale of these values, with 5 % more room at both ends."""
        low, high = min(values), max(values)
        room = 0.05 * (high - low) or 1.0
        return cls(low - room, high + room, (best, worst) if axis.direction == "lower" else (worst, best))

    def __call__(self, value: float) -> float:
        return round(float(np.interp(value, (self.low, self.high), self.ends)), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers as (place, label)."""
        from matplotlib.ticker import MaxNLocator

        values = MaxNLocator(8, steps=(1, 2, 5, 10)).tick_values(self.low, self.high)
        return [(self(value), f"{value:g}") for value in values if self.low <= value <= self.high]


@dataclass(frozen=True)
class Series:
    """The variants of one method, in their natural order. Controls are gray.

    ``lines`` join variants that differ in numbers alone.
    """

    method: str
    color: str
    shape: str
    control: bool
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Plot:
    """The plot of one dataset: one privacy measure against one utility measure."""

    dataset: str
    privacy: Axis
    utility: Axis
    across: Scale
    up: Scale
    series: tuple[Series, ...]
    missing: int
    """The number of settings without both numbers."""

    def text(self, point: Point) -> str:
        """The numbers of a point in words, with their measures, intervals and denominators."""
        utility, privacy, naive = point.measured
        numbers = ((self.privacy, privacy), (self.privacy.hollow, naive), (self.utility, utility))
        texts = []
        for axis, number in numbers:
            if axis and number.value is not None:
                ends = ", ".join(f"{end:.3g}" for end in number.interval or (number.value, number.value))
                texts.append(f"{axis.label} {number.value:.4g} [{ends}] (over {number.over} of {number.of})")
        return f"{point.title}: {'; '.join(texts)}"


def axes(tables: Iterable[Table], context: Context, names: Sequence[str]) -> list[Axis]:
    """For each metric the measure that most columns of the tables have. A metric without a column is left out.

    A metric of `ATTACKERS` has its own part.
    """
    counts: dict[str, Counter] = {}
    for column in (column for table in tables for column in table.columns if not column.attempt):
        counts.setdefault(column.metric, Counter())[context.judge(column.judge), column.part] += 1
    every = []
    for name in names:
        if name in counts:
            (judge, part), _ = counts[name].most_common(1)[0]
            part, naive = ATTACKERS.get(name, (part, ""))
            metric = discovery.load("metrics", name)
            every.append(Axis(
                metric=name, judge=Named(name=judge, role=judge) if judge else None, part=part, naive=naive,
                title=metric.title, unit=metric.unit, direction=metric.direction,
            ))  # fmt: skip
    return every


def plot(
    dataset: str,
    privacy: Axis,
    utility: Axis,
    order: Sequence[Setting],
    cells: Cells,
    methods: Methods,
    context: Context,
) -> Plot | None:
    """The plot of one dataset, or None when fewer than two settings have both numbers. ``order``: all settings."""
    mine = [setting for setting in order if setting[0] == dataset]
    measures = (utility, privacy, privacy.hollow)
    titles = [titled("/".join(setting[1:]), setting[1], context.latent_stand_ins) for setting in mine]
    made = (measured_point(setting, title, _control(setting[1]), measures, cells, context)
            for setting, title in zip(mine, titles, strict=True))  # fmt: skip
    points = [point for point in made if isinstance(point, Point)]
    if len(points) < 2:
        return None
    heights = [value for point in points for value in (*point.up, point.naive) if value is not None]
    names = list(dict.fromkeys(method for _, method, _ in mine))
    looks = _looks([name for name in names if not _control(name)])
    series = []
    for name in names:
        own = tuple(point for point in points if point.setting[1] == name)
        if own:
            series.append(Series(name, *looks.get(name, (FAINT, "square")), _control(name), own,
                                 _lines(own, methods.get(name, {}))))  # fmt: skip
    return Plot(
        dataset,
        privacy,
        utility,
        across=Scale.of([end for point in points for end in point.across], utility, LEFT + PAD, WIDE - PAD),
        up=Scale.of(heights, privacy, HIGH - BELOW - PAD, PAD),
        series=tuple(series),
        missing=len(mine) - len(points),
    )


def _lines(points: Iterable[Point], knobs: Mapping[str, Knobs]) -> tuple[tuple[Point, ...], ...]:
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(variants.family(point.setting[2], knobs), []).append(point)
    return tuple(tuple(line) for line in families.values() if len(line) > 1)


def _looks(methods: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """A color and a shape for each method, with the colors of the figures. No two methods have the same pair."""
    return {
        name: (COLORS[number % len(COLORS)], SHAPES[number // len(COLORS) % len(SHAPES)])
        for number, name in enumerate(methods)
    }


@cache
def _control(method: str) -> bool:
    return method in discovery.names("methods") and discovery.load("methods", method).capabilities.control
