"""Trade-offs: a privacy metric against a utility metric, a point a cell, drawn so that better is up and right."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from masquerade import discovery
from masquerade.papers.canvas import COLOURS, FAINT
from masquerade.papers.measured import Cells, Context
from masquerade.papers.reference import Measure, Named, Table
from masquerade.report import variants
from masquerade.report.chain import Cell
from masquerade.report.variants import Knobs, Methods

PRIVACY = ("re_identification_rate", "protection_success_rate_at_far", "identity_distance")
UTILITY = ("frechet_distance", "attribute_preservation_rate", "perceptual_distance", "detection_rate")
SHAPES = ("circle", "triangle", "square", "diamond")
WIDE, HIGH, LEFT, BELOW, PAD = 640, 400, 64, 52, 14
"""Of a plot, in pixels of its own: size, room for the labels of the axes, and around the points."""


@dataclass(frozen=True)
class Axis:
    """One measure: what stands on the axis, and its ticks as (place, label)."""

    metric: str
    judge: str
    part: str
    title: str
    unit: str
    better: str
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def key(self) -> str:
        return self.metric

    @property
    def label(self) -> str:
        told = ", ".join(filter(None, [self.part, f"by {self.judge}" if self.judge else ""]))
        return f"{self.title}{f' ({told})' if told else ''}"


@dataclass(frozen=True)
class Point:
    """One cell: where it stands, with its numbers and what they are over; bars of one standard deviation over seeds."""

    cell: Cell
    x: float
    y: float
    told: str
    bars: tuple[float, float]


@dataclass(frozen=True)
class Series:
    """The variants of one method, in their natural order; controls are grey. ``lines`` join variants that differ in
    numbers alone."""

    method: str
    title: str
    colour: str
    shape: str
    control: bool
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Plot:
    dataset: str
    privacy: Axis
    utility: Axis
    series: tuple[Series, ...]
    missing: int
    """How many cells have not both numbers."""


def measures(tables: Iterable[Table], context: Context, names: Sequence[str]) -> list[Axis]:
    """For each metric the measure that most columns of the tables ask for; a metric that none asks for is left out."""
    asked: dict[str, Counter] = {}
    for column in (column for table in tables for column in table.columns if not column.attempt):
        told = (context.judge(column.judge), column.part)
        asked.setdefault(column.metric, Counter())[told] += 1
    axes = []
    for name in names:
        if name in asked:
            (judge, part), _ = asked[name].most_common(1)[0]
            metric = discovery.load("metrics", name)
            axes.append(Axis(name, judge, part, metric.title, metric.unit, metric.direction))
    return axes


def plot(
    dataset: str,
    privacy: Axis,
    utility: Axis,
    order: Sequence[Cell],
    cells: Cells,
    methods: Methods,
    context: Context,
) -> Plot | None:
    """The plot of one dataset; None where fewer than two cells have both numbers. ``order``: the cells, in order."""
    mine = [cell for cell in order if cell[0] == dataset]
    found = {cell: (_measured(cell, utility, cells, context), _measured(cell, privacy, cells, context))
             for cell in mine}  # fmt: skip
    known = {cell: pair for cell, pair in found.items() if all(value.value is not None for value in pair)}
    if len(known) < 2:
        return None
    xs, ys = ([pair[place].value for pair in known.values()] for place in (0, 1))
    across = _scale(xs, (LEFT + PAD, WIDE - PAD), utility.better == "lower")
    up = _scale(ys, (HIGH - BELOW - PAD, PAD), privacy.better == "lower")
    names = list(dict.fromkeys(method for _, method, _ in mine))
    controls = {name for name in names if _control(name)}
    looks = _looks([name for name in names if name not in controls])
    series = []
    for name in names:
        points = tuple(_point(cell, pair, utility, privacy, across, up)
                       for cell, pair in known.items() if cell[1] == name)  # fmt: skip
        if points:
            colour, shape = looks.get(name, (FAINT, "square"))
            lines = _lines(points, methods.get(name, {}))
            series.append(Series(name, _title(name), colour, shape, name in controls, points, lines))
    ticks = [tuple((place(value), f"{value:g}") for value in _ticks(values))
             for place, values in ((across, xs), (up, ys))]  # fmt: skip
    return Plot(
        dataset,
        Axis(**(vars(privacy) | {"ticks": ticks[1]})),
        Axis(**(vars(utility) | {"ticks": ticks[0]})),
        tuple(series),
        len(mine) - len(known),
    )


def _measured(cell: Cell, axis: Axis, cells: Cells, context: Context):
    judge = Named(name=axis.judge, role=axis.judge) if axis.judge else None
    return cells.measured(cell, Measure(metric=axis.metric, judge=judge, part=axis.part), context)


def _point(cell: Cell, pair, utility: Axis, privacy: Axis, across, up) -> Point:
    x, y = pair
    told = "; ".join(
        f"{axis.label} {value.value:.4g}{f' ± {value.seed_spread:.2g}' if value.seed_spread is not None else ''}"
        f" (over {value.over} of {value.of})"
        for axis, value in ((privacy, y), (utility, x))
    )
    bars = tuple(
        abs(place(value.value + (value.seed_spread or 0.0)) - place(value.value))
        for place, value in ((across, x), (up, y))
    )
    return Point(cell, across(x.value), up(y.value), f"{cell[1]}/{cell[2]}: {told}", bars)


def _lines(points: Iterable[Point], knobs: Mapping[str, Knobs]) -> tuple[tuple[Point, ...], ...]:
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(variants.family(point.cell[2], knobs), []).append(point)
    return tuple(tuple(line) for line in families.values() if len(line) > 1)


def _scale(values: Sequence[float], ends: tuple[float, float], backwards: bool):
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
    """A colour and a shape for each method, as in the figures; both together are its own."""
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
    """What the reader can choose: datasets, privacy and utility measures that have a plot, each once."""
    plots = list(plots)
    return {
        "datasets": list(dict.fromkeys(plot.dataset for plot in plots)),
        "privacy": {plot.privacy.key: plot.privacy for plot in plots},
        "utility": {plot.utility.key: plot.utility for plot in plots},
    }
