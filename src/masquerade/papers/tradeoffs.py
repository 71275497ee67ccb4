"""Trade-offs: the points of privacy against utility, which the report plots too, and the figure of them.

The line between both points of a method shows how much privacy the naive attacker reports that is not there. The same
inputs give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masquerade.core import canvas
from masquerade.core.canvas import COLORS, FAINT, INK
from masquerade.papers import evasion, label_placement
from masquerade.papers.context import Context
from masquerade.papers.declarations import Measure
from masquerade.papers.figure_declarations import Axis, Tradeoff
from masquerade.papers.label_placement import COVERED
from masquerade.papers.measured import Cells, Measured
from masquerade.params.matrix import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH, LEGEND = 7.4, 5.4, 0.2
"""Of the sheet, the plot and its legend, in inches."""
MARK, SMALL, LETTERS = 6.0, 4.6, 7.0
"""The size of a filled point, of a hollow one, and of the letters of a label, in typographic points."""
LINE = 12.0
"""The cost of a label that covers a bar or a line; `COVERED` is that of covering a point."""
Ends = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """One setting: its place, the ends of both intervals, and its privacy under the naive attacker if there is one."""

    setting: Setting
    title: str
    control: bool
    x: float
    y: float
    across: Ends
    up: Ends
    naive: float | None
    measured: tuple[Measured, Measured, Measured]
    """The numbers behind x, y and ``naive``."""


def measured_point(
    setting: Setting, title: str, control: bool, measures: Sequence[Measure | None], cells: Cells, context: Context
) -> Point | str:
    """The point of one setting, or the reason why it has none: one of both numbers is missing.

    ``measures``: of utility, of privacy, and of privacy under the naive attacker, if that is drawn.
    """
    x, y, naive = (cells.measured(setting, measure, context) if measure else Measured() for measure in measures)
    if x.value is None or y.value is None:
        return x.reason if x.value is None else y.reason
    across, up = x.interval or (x.value, x.value), y.interval or (y.value, y.value)
    return Point(setting, title, control, x.value, y.value, across, up, naive.value, (x, y, naive))


def tradeoff(
    figure: Tradeoff,
    cells: Iterable[Mapping[str, Any]],
    skipped: Mapping[Setting, str],
    context: Context,
    outputs: Sequence[Path],
) -> None:
    """Draw a filled point for each method under the strongest attacker, joined to a hollow one under the naive one.

    ``cells``: the metrics of every cell, all seeds. Bars show the interval of each number. A method without both
    numbers is left out; the notes below the figure name it with the reason. ``outputs``: the files to write; the suffix
    (.png, .svg) selects the format.
    """
    points, reasons, over = _points(figure, Cells(cells), skipped, context)
    with canvas.style():
        drawing, [[ax], [below]] = canvas.sheet(WIDE, (HIGH, LEGEND), 1, _notes(figure, points, reasons, over, context))
        colors = [FAINT if point.control else color for point, color in zip(points, cycle(COLORS), strict=False)]
        for point, color in zip(points, colors, strict=True):
            _mark(ax, point, color)
        _front(ax, figure, points)
        _axes(ax, figure)
        _legend(below)
        drawing.axes[-1].texts[0].set_in_layout(False)  # the notes: they may be wider than the plot
        drawing.draw_without_rendering()  # the layout: labels need the final places
        drawing.set_layout_engine("none")
        _labels(ax, points, colors)
        canvas.save(drawing, outputs, dpi=200)


def _points(
    figure: Tradeoff, cells: Cells, skipped: Mapping[Setting, str], context: Context
) -> tuple[list[Point], dict[str, str], tuple[int, ...]]:
    """The points, the reason for each title without one, and the different numbers of pictures behind the points."""
    dataset, measures = context.dataset(figure.dataset), (figure.utility, figure.privacy, figure.naive)
    points: list[Point] = []
    reasons: dict[str, str] = {}
    for entry in (*figure.settings, *figure.controls):
        key = (dataset, entry.method, entry.variant)
        made = measured_point(key, entry.title, entry in figure.controls, measures, cells, context)
        if isinstance(made, Point):
            points.append(made)
        else:
            reasons[entry.title] = made if key in cells else skipped.get(key, "it has no metrics")
    over = {point.measured[1].over // point.measured[1].seeds for point in points}
    return points, reasons, tuple(sorted(over))


def _mark(ax: "Axes", point: Point, color: str) -> None:
    ax.plot(point.across, (point.y, point.y), color=color, lw=0.8, alpha=0.6, zorder=2)
    ax.plot((point.x, point.x), point.up, color=color, lw=0.8, alpha=0.6, zorder=2)
    ax.plot(point.x, point.y, marker="o", ms=MARK, mfc=color, mec="white", mew=0.6, zorder=4)
    if point.naive is not None:
        ax.plot((point.x, point.x), (point.y, point.naive), color=color, lw=1.1, ls=(0, (1, 1.5)), zorder=1)
        ax.plot(point.x, point.naive, marker="o", ms=SMALL, mfc="white", mec=color, mew=1.1, zorder=3)


def front(figure: Tradeoff, points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both measures, controls excepted: best utility first, best privacy last."""
    across, up = (-1 if axis.direction == "lower" else 1 for axis in (figure.utility, figure.privacy))
    best: list[Point] = []
    for point in sorted((point for point in points if not point.control), key=lambda p: (-across * p.x, -up * p.y)):
        if not best or up * point.y > up * best[-1].y:
            best.append(point)
    return best


def _front(ax: "Axes", figure: Tradeoff, points: Iterable[Point]) -> None:
    best = front(figure, points)
    ax.step([p.x for p in best], [p.y for p in best], where="post", color="#bbbbbb", lw=1.2, zorder=0.5)


def _axes(ax: "Axes", figure: Tradeoff) -> None:
    """Labels and directions: better values are up and to the right."""
    ax.margins(0.07)
    ax.set(xlabel=_label(figure.utility), ylabel=_label(figure.privacy))
    for axis, declared in ((ax.xaxis, figure.utility), (ax.yaxis, figure.privacy)):
        axis.set_inverted(declared.direction == "lower")
        if declared.percent:
            axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def _label(axis: Axis) -> str:
    return f"{axis.title}: {axis.direction} is better →"


def _legend(below: "Axes") -> None:
    from matplotlib.lines import Line2D

    filled = Line2D([], [], ls="", marker="o", ms=MARK, color=INK, label="strongest attacker")
    hollow = Line2D([], [], ls="", marker="o", ms=SMALL, mfc="white", mec=INK, label="naive attacker")
    joined = Line2D([], [], color=INK, lw=1.1, ls=(0, (1, 1.5)), label="false sense of privacy")
    control = Line2D([], [], ls="", marker="o", ms=MARK, color=FAINT, label="control")
    best = Line2D([], [], color="#bbbbbb", lw=1.2, label="best methods")
    handles = [filled, hollow, joined, control, best]
    names = below.legend(handles=handles, loc="upper left", ncols=len(handles), borderaxespad=0, columnspacing=1.6)
    names.set_in_layout(False)
    below.axis("off")


def _labels(ax: "Axes", points: Sequence[Point], colors: Sequence[str]) -> None:
    """The titles beside their points, each with a thin leader if it is not next to its point."""
    if not points:
        return
    from matplotlib.patheffects import withStroke

    unit = ax.figure.dpi / 72
    halo = [withStroke(linewidth=2.2, foreground="white")]
    texts = [ax.text(0, 0, point.title, fontsize=LETTERS, color=INK, va="center", ha="center", path_effects=halo)
             for point in points]  # fmt: skip
    sizes = np.array([(box.width, box.height) for box in (text.get_window_extent() for text in texts)]) / unit
    at = ax.transData.transform([(point.x, point.y) for point in points]) / unit
    obstacles, weights = _obstacles(ax, points, unit)
    boxes = label_placement.placed(at, sizes, obstacles, weights, np.array(ax.get_window_extent().extents) / unit)
    to_data = ax.transData.inverted()
    for text, box, point, color in zip(texts, boxes, at, colors, strict=True):
        x, y = to_data.transform((box[:2] + box[2:]) / 2 * unit)
        text.set_position((x, y))
        end = label_placement.nearest(box[None], point)[0]
        if np.linalg.norm(end - point) > MARK:
            ax.plot(*to_data.transform(np.stack([point, end]) * unit).T, color=color, lw=0.5, zorder=1.5)


def _obstacles(ax: "Axes", points: Sequence[Point], unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of all points and lines, (M, 4), in typographic points, and the cost of covering each, (M,)."""
    boxes, weights = [], []

    def add(xs: Ends, ys: Ends, room: float, weight: float) -> None:
        ends = ax.transData.transform(np.stack([xs, ys], axis=1)) / unit
        boxes.append(np.concatenate([ends.min(axis=0) - room, ends.max(axis=0) + room]))
        weights.append(weight)

    for point in points:
        add((point.x, point.x), (point.y, point.y), MARK / 2, COVERED)
        add(point.across, (point.y, point.y), 0.5, LINE)
        add((point.x, point.x), point.up, 0.5, LINE)
        if point.naive is not None:
            add((point.x, point.x), (point.naive, point.naive), SMALL / 2, COVERED)
            add((point.x, point.x), (point.y, point.naive), 0.5, LINE)
    return np.array(boxes), np.array(weights)


def _notes(
    figure: Tradeoff, points: Sequence[Point], reasons: Mapping[str, str], over: Sequence[int], context: Context
) -> list[str]:
    every = len(points) + len(reasons)
    titles: dict[str, list[str]] = {}
    for title, reason in reasons.items():
        titles.setdefault(reason.rstrip("."), []).append(title)
    why = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in titles.items())
    left_out = f"{len(reasons)} of {every} are left out, without both numbers: {why}." if reasons else ""
    counts = " to ".join(map(str, dict.fromkeys((over[0], over[-1])))) if over else ""
    behind = f"Each rate of an attacker is over {counts} pictures. " if over else "Nothing was measured. "
    bars = "Bars: intervals that cover 95 % of the bootstrap samples of the people. " if points else ""
    evading = evasion.notes((entry.method, entry.title) for entry in figure.settings)
    return [behind + bars + context.about(figure), left_out, *evading, figure.note]
