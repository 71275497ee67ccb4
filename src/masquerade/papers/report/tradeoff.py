"""Prepares the trade-off plots: privacy against utility, one point for each setting, better values up and right."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from masquerade.core import discovery
from masquerade.core.canvas import COLOURS, FAINT
from masquerade.papers.context import Context
from masquerade.papers.declarations import Measure, Named, Table
from masquerade.papers.measured import Cells, Measured
from masquerade.papers.report import variants
from masquerade.papers.report.variants import Knobs, Methods
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
Scale = Callable[[float], float]
"""Value -> place along an axis."""


@dataclass(frozen=True)
class Axis:
    """The measure of one axis, and its ticks as (place, label)."""

    metric: str
    judge: str
    part: str
    title: str
    unit: str
    better: str
    naive: str = ""
    """The part of the hollow points; '' if there are none."""
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def key(self) -> str:
        return self.metric

    @property
    def label(self) -> str:
        details = ", ".join(filter(None, [self.part, f"by {self.judge}" if self.judge else ""]))
        return f"{self.title}{f' ({details})' if details else ''}"


@dataclass(frozen=True)
class Point:
    """One setting: its place, its numbers with their denominators in words, and the ends of their intervals.

    ``bars``: left and right end of the interval across, upper and lower end of the other. ``naive``: the height of the
    hollow point; None without one.
    """

    setting: Setting
    x: float
    y: float
    text: str
    bars: tuple[float, float, float, float]
    naive: float | None = None


@dataclass(frozen=True)
class Series:
    """The variants of one method, in their natural order. Controls are grey.

    ``lines`` join variants that differ in numbers alone.
    """

    method: str
    title: str
    colour: str
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
    series: tuple[Series, ...]
    missing: int
    """The number of settings without both numbers."""


def measures(tables: Iterable[Table], context: Context, names: Sequence[str]) -> list[Axis]:
    """For each metric the measure that most columns of the tables have. A metric without a column is left out.

    A metric of `ATTACKERS` has its own part.
    """
    counts: dict[str, Counter] = {}
    for column in (column for table in tables for column in table.columns if not column.attempt):
        counts.setdefault(column.metric, Counter())[context.judge(column.judge), column.part] += 1
    axes = []
    for name in names:
        if name in counts:
            (judge, part), _ = counts[name].most_common(1)[0]
            part, naive = ATTACKERS.get(name, (part, ""))
            metric = discovery.load("metrics", name)
            axes.append(Axis(name, judge, part, metric.title, metric.unit, metric.direction, naive))
    return axes


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
    pairs = {setting: (_measured(setting, utility, cells, context), _measured(setting, privacy, cells, context))
             for setting in mine}  # fmt: skip
    known = {setting: pair for setting, pair in pairs.items() if all(value.value is not None for value in pair)}
    if len(known) < 2:
        return None
    naive = {setting: _measured(setting, _hollow(privacy), cells, context) for setting in known if privacy.naive}
    xs, ys = ([end for pair in known.values() for end in _ends(pair[place])] for place in (0, 1))
    ys += [value.value for value in naive.values() if value.value is not None]
    across = _scale(xs, (LEFT + PAD, WIDE - PAD), utility.better == "lower")
    up = _scale(ys, (HIGH - BELOW - PAD, PAD), privacy.better == "lower")
    names = list(dict.fromkeys(method for _, method, _ in mine))
    controls = {name for name in names if _control(name)}
    looks = _looks([name for name in names if name not in controls])
    series = []
    for name in names:
        points = tuple(
            _point(setting, pair, naive.get(setting), utility, privacy, across, up)
            for setting, pair in known.items()
            if setting[1] == name
        )
        if points:
            colour, shape = looks.get(name, (FAINT, "square"))
            lines = _lines(points, methods.get(name, {}))
            series.append(Series(name, _title(name), colour, shape, name in controls, points, lines))
    ticks = [tuple((place(value), f"{value:g}") for value in _ticks(values))
             for place, values in ((across, xs), (up, ys))]  # fmt: skip
    return Plot(
        dataset,
        replace(privacy, ticks=ticks[1]),
        replace(utility, ticks=ticks[0]),
        tuple(series),
        len(mine) - len(known),
    )


def _measured(setting: Setting, axis: Axis, cells: Cells, context: Context) -> Measured:
    judge = Named(name=axis.judge, role=axis.judge) if axis.judge else None
    return cells.measured(setting, Measure(metric=axis.metric, judge=judge, part=axis.part), context)


def _hollow(privacy: Axis) -> Axis:
    """The measure of the hollow points."""
    return replace(privacy, part=privacy.naive)


def _point(
    setting: Setting,
    pair: tuple[Measured, Measured],
    naive: Measured | None,
    utility: Axis,
    privacy: Axis,
    across: Scale,
    up: Scale,
) -> Point:
    x, y = pair
    numbers, height = [(privacy, y), (utility, x)], None
    if naive and naive.value is not None:
        numbers.insert(1, (_hollow(privacy), naive))
        height = up(naive.value)
    text = "; ".join(_said(axis, value) for axis, value in numbers)
    assert x.value is not None
    assert y.value is not None
    left, right = sorted(map(across, _ends(x)))
    top, bottom = sorted(map(up, _ends(y)))
    bars = (left, right, top, bottom)
    return Point(setting, across(x.value), up(y.value), f"{setting[1]}/{setting[2]}: {text}", bars, height)


def _said(axis: Axis, value: Measured) -> str:
    """A number with its measure, its interval and its denominator."""
    ends = ", ".join(f"{end:.3g}" for end in _ends(value))
    return f"{axis.label} {value.value:.4g} [{ends}] (over {value.over} of {value.of})"


def _ends(measured: Measured) -> tuple[float, float]:
    """The ends of the interval of a number; the number itself twice if it has none."""
    assert measured.value is not None
    return measured.interval or (measured.value, measured.value)


def _lines(points: Iterable[Point], knobs: Mapping[str, Knobs]) -> tuple[tuple[Point, ...], ...]:
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(variants.family(point.setting[2], knobs), []).append(point)
    return tuple(tuple(line) for line in families.values() if len(line) > 1)


def _scale(values: Sequence[float], ends: tuple[float, float], backwards: bool) -> Scale:
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 1.0
    low, high = low - room, high + room
    if backwards:
        low, high = high, low
    return lambda value: round(ends[0] + (value - low) / (high - low) * (ends[1] - ends[0]), 2)


def _ticks(values: Sequence[float]) -> list[float]:
    """Four to eight round numbers within the values."""
    low, high = min(values), max(values)
    if high == low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 7)
    return [round(number * step, 10) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _looks(methods: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """A colour and a shape for each method, with the colours of the figures. No two methods have the same pair."""
    return {
        name: (COLOURS[number % len(COLOURS)], SHAPES[number // len(COLOURS) % len(SHAPES)])
        for number, name in enumerate(methods)
    }


@cache
def _control(method: str) -> bool:
    return method in discovery.names("methods") and discovery.load("methods", method).capabilities.control


@cache
def _title(method: str) -> str:
    return discovery.load("methods", method).title if method in discovery.names("methods") else method


def facts(plots: Iterable[Plot]) -> dict[str, Any]:
    """The choices of the reader: datasets, privacy and utility measures that have a plot, each once."""
    plots = list(plots)
    return {
        "datasets": list(dict.fromkeys(plot.dataset for plot in plots)),
        "privacy": {plot.privacy.key: plot.privacy for plot in plots},
        "utility": {plot.utility.key: plot.utility for plot in plots},
    }
