"""Trade-offs: the figure of privacy against utility, one point for each method.

The line between both points of a method shows how much privacy the naive attacker reports that is not there. The same
inputs give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core import canvas
from masquerade.core.canvas import COLORS, FAINT, INK
from masquerade.papers import cautions
from masquerade.papers.context import Context
from masquerade.papers.figure_declarations import Axis, Tradeoff
from masquerade.papers.measured import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, HIGH, LEGEND = 8.4, 5.4, 0.2
"""Of the sheet, the plot and its legend, in inches."""
MARK, SMALL, LETTERS = 6.0, 4.6, 7.0
"""The size of a filled point, of a hollow one, and of the letters of a label, in typographic points."""
ROW, MARGIN = 0.032, 1.03
"""The least distance of two labels, and where their column begins, in heights and widths of the plot."""
Ends = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """One setting: its place, the ends of both intervals, and its privacy under the naive attacker if there is one."""

    title: str
    control: bool
    x: float
    y: float
    across: Ends
    up: Ends
    naive: float | None
    images: int
    """The number of images behind y."""


def draw(figure: Tradeoff, results: Results, outputs: Sequence[Path]) -> None:
    """Draw a filled point for each method under the strongest attacker, joined to a hollow one under the naive one.

    Bars show the interval of each number. A method without both numbers is left out; the notes below the figure name it
    with the reason. ``outputs``: the files to write; the suffix (.png, .svg) selects the format.
    """
    points, reasons = find_points(figure, results)
    with canvas.use_style():
        notes = _notes(figure, points, reasons, results.context)
        drawing, [[ax], [below]] = canvas.make_sheet(WIDE, (HIGH, LEGEND), 1, notes)
        colors = [FAINT if point.control else color for point, color in zip(points, cycle(COLORS), strict=False)]
        for point, color in zip(points, colors, strict=True):
            _draw_point(ax, point, color)
        front = find_front(figure, points)
        ax.step([p.x for p in front], [p.y for p in front], where="post", color="#bbbbbb", lw=1.2, zorder=0.5)
        _label_axes(ax, figure)
        draw_labels(ax, points, colors)
        _draw_legend(below)
        canvas.save_drawing(drawing, outputs, dpi=200)


def find_points(figure: Tradeoff, results: Results) -> tuple[list[Point], dict[str, str]]:
    """The points, and title -> reason of each method without one: one of both numbers is missing."""
    points: list[Point] = []
    reasons: dict[str, str] = {}
    for entry in (*figure.settings, *figure.controls):
        setting = (results.context.dataset(figure.dataset), entry.method, entry.variant)
        x, y, naive = (results.measure(setting, measure) for measure in (figure.utility, figure.privacy, figure.naive))
        if x.value is None or y.value is None:
            reason = x.reason if x.value is None else y.reason
            reasons[entry.title] = results.explain_missing(setting) or reason.rstrip(".")
            continue
        across, up = x.interval or (x.value, x.value), y.interval or (y.value, y.value)
        control, images = entry in figure.controls, y.over // y.seeds
        points.append(Point(entry.title, control, x.value, y.value, across, up, naive.value, images))
    return points, reasons


def _draw_point(ax: "Axes", point: Point, color: str) -> None:
    ax.plot(point.across, (point.y, point.y), color=color, lw=0.8, alpha=0.6, zorder=2)
    ax.plot((point.x, point.x), point.up, color=color, lw=0.8, alpha=0.6, zorder=2)
    ax.plot(point.x, point.y, marker="o", ms=MARK, mfc=color, mec="white", mew=0.6, zorder=4)
    if point.naive is not None:
        ax.plot((point.x, point.x), (point.y, point.naive), color=color, lw=1.1, ls=(0, (1, 1.5)), zorder=1)
        ax.plot(point.x, point.naive, marker="o", ms=SMALL, mfc="white", mec=color, mew=1.1, zorder=3)


def find_front(figure: Tradeoff, points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both measures, controls excepted: best utility first, best privacy last."""
    across, up = (-1 if axis.direction == "lower" else 1 for axis in (figure.utility, figure.privacy))
    best: list[Point] = []
    for point in sorted((point for point in points if not point.control), key=lambda p: (-across * p.x, -up * p.y)):
        if not best or up * point.y > up * best[-1].y:
            best.append(point)
    return best


def _label_axes(ax: "Axes", figure: Tradeoff) -> None:
    """Labels and directions: better values are up and to the right."""
    ax.margins(0.07)
    ax.set(xlabel=_label_axis(figure.utility), ylabel=_label_axis(figure.privacy))
    for axis, declared in ((ax.xaxis, figure.utility), (ax.yaxis, figure.privacy)):
        axis.set_inverted(declared.direction == "lower")
        if declared.percent:
            axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def _label_axis(axis: Axis) -> str:
    return f"{axis.title}: {axis.direction} is better →"


def _draw_legend(below: "Axes") -> None:
    from matplotlib.lines import Line2D

    filled = Line2D([], [], ls="", marker="o", ms=MARK, color=INK, label="strongest attacker")
    hollow = Line2D([], [], ls="", marker="o", ms=SMALL, mfc="white", mec=INK, label="naive attacker")
    joined = Line2D([], [], color=INK, lw=1.1, ls=(0, (1, 1.5)), label="what the naive attacker misses")
    control = Line2D([], [], ls="", marker="o", ms=MARK, color=FAINT, label="control")
    best = Line2D([], [], color="#bbbbbb", lw=1.2, label="best methods")
    handles = [filled, hollow, joined, control, best]
    names = below.legend(handles=handles, loc="upper left", ncols=len(handles), borderaxespad=0, columnspacing=1.6)
    names.set_in_layout(False)
    below.axis("off")


def draw_labels(ax: "Axes", points: Sequence[Point], colors: Sequence[str]) -> None:
    """The titles in a column beside the plot, in the order of the heights of their points, each with a leader."""
    for read_limits in (ax.get_xlim, ax.get_ylim):
        read_limits()  # matplotlib sets the limits when they are read; the heights follow from them
    heights = np.array([ax.transLimits.transform((point.x, point.y))[1] for point in points])
    order = np.argsort(heights, kind="stable")
    rows = ROW * np.arange(len(points))
    places = np.maximum.accumulate(heights[order] - rows) + rows  # at least a row apart
    places = np.minimum(places, 1 - rows[::-1])  # and the last one no higher than the plot
    for number, place in zip(order, places, strict=True):
        ax.annotate(
            points[number].title, (points[number].x, points[number].y), (MARGIN, place), textcoords="axes fraction",
            fontsize=LETTERS, color=INK, va="center", zorder=1.5, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colors[number], "lw": 0.4, "alpha": 0.7, "relpos": (0, 0.5)},
        )  # fmt: skip


def _notes(figure: Tradeoff, points: Sequence[Point], reasons: Mapping[str, str], context: Context) -> list[str]:
    titles: dict[str, list[str]] = {}
    for title, reason in reasons.items():
        titles.setdefault(reason, []).append(title)
    why = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in titles.items())
    every = len(points) + len(reasons)
    left_out = (
        f"{len(reasons)} of {every} methods are left out, because one of the two numbers is missing: {why}."
        if reasons
        else ""
    )
    measured = "Nothing was measured. "
    if over := sorted({point.images for point in points}):
        counts = " to ".join(map(str, dict.fromkeys((over[0], over[-1]))))
        measured = f"Each attacker's rate is over {counts} images. Bars show 95 % bootstrap intervals over people. "
    evading = cautions.explain_evasion((entry.method, entry.title) for entry in figure.settings)
    return [measured + context.about(figure), left_out, *evading, figure.note]
