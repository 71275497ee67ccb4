"""Draws the metrics of one method over one of its knobs. The same inputs give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core import canvas
from masquerade.core.canvas import COLORS, FAINT, LINE_STYLES
from masquerade.papers.figure_declarations import Curve, Curves, Panel
from masquerade.papers.measured import Measured, Results, fact_text
from masquerade.papers.reference import needs
from masquerade.params.matrix import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Places = Sequence[tuple[float, Setting]]
"""(x, (dataset, method, variant)) of every variant that was measured and has an x, by x."""
Values = Mapping[Curve, Sequence[Measured]]
"""Curve -> its value at each place."""


def draw(figure: Curves, results: Results, outputs: Sequence[Path]) -> None:
    """Draw the metrics of one method over its variants, with the paper's numbers as hollow markers.

    A band shows the interval of each number. The notes below the figure give the reason for each missing point.
    ``outputs``: the files to write; the suffix (.png, .svg) selects the format.
    """
    places = find_places(figure, results)
    curves = [curve for panel in figure.panels for curve in panel.curves]
    values = {curve: [results.measure(key, curve) for _, key in places] for curve in curves}
    entries = max(
        sum(1 + bool(curve.markers) + bool(curve.threshold) for curve in panel.curves) for panel in figure.panels
    )
    wide, legend = 3.7 * len(figure.panels), 0.2 * (entries + len(figure.controls))
    with canvas.use_style():
        drawing, rows = canvas.make_sheet(wide, (2.7, legend), len(figure.panels), _notes(figure, values, results))
        for panel, ax, below in zip(figure.panels, *rows, strict=True):
            for number, (color, curve) in enumerate(zip(COLORS, panel.curves, strict=False)):
                _draw_curve(ax, curve, color, [x for x, _ in places], values[curve], results)
                draw_threshold(ax, curve, color, number)
            _draw_controls(ax, figure, panel, results)
            _label_axes(ax, figure, panel, label_axis(figure, places, results))
            names = below.legend(*ax.get_legend_handles_labels(), loc="upper left", handlelength=2.6, borderaxespad=0)
            names.set_in_layout(False)
            below.axis("off")
        canvas.save_drawing(drawing, outputs, dpi=200)


def find_places(figure: Curves, results: Results) -> Places:
    """The places of the variants on the x axis, from the fact or the metric of the figure."""
    places, dataset = [], results.context.dataset(figure.dataset)
    for _, method, variant in needs(figure, results.variants(dataset, figure.method)):
        key = (dataset, method, variant)
        values = [results.measure(key, figure.x).value] if figure.x else results.facts(key).get(figure.fact, [])
        if method == figure.method and len(values) == 1 and values[0] is not None:
            places.append((float(values[0]), key))
    return sorted(places)


def _draw_curve(
    ax: "Axes", curve: Curve, color: str, at: Sequence[float], values: Sequence[Measured], results: Results
) -> None:
    context = results.context
    judge = f"measured here by {context.judge(curve.judge)}" if context.is_replaced(curve.judge) else "measured here"
    points = [(x, value.value, *(value.interval or (value.value, value.value)))
              for x, value in zip(at, values, strict=True) if value.value is not None]  # fmt: skip
    if points:
        x, y, low, high = np.array(points).T
        style = {"lw": 1.8, "ls": "-"} if curve.printed else {"lw": 1.1, "ls": (0, (5, 1.5))}
        label = f"{curve.title}, {judge}"
        ax.plot(x, y, color=color, marker="o", ms=3.5 if curve.printed else 2.5, label=label, zorder=3, **style)
        ax.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
    if curve.markers:
        printed = [(marker.at, marker.printed.value) for marker in curve.markers if marker.printed is not None]
        sources = " and ".join(dict.fromkeys(marker.source for marker in curve.markers))
        label = f"{curve.title}, printed ({sources})"
        ax.plot(*zip(*printed, strict=True), ls="", marker="D", ms=6, mfc="white", mec=color, mew=1.4, label=label,
                zorder=4)  # fmt: skip


def draw_threshold(ax: "Axes", curve: Curve, color: str, number: int) -> None:
    """A dotted line, if the curve has a threshold.

    The dots of curve ``number`` lie between those of its neighbors, which may have the same threshold.
    """
    if threshold := curve.threshold:
        label = f"{curve.title}, threshold {threshold.printed.text}, printed ({threshold.source})"
        ax.axhline(threshold.printed.value, color=color, lw=1.2, ls=(4 * number, (3, 5)), label=label, zorder=2)


def _draw_controls(ax: "Axes", figure: Curves, panel: Panel, results: Results) -> None:
    """A horizontal line for each control, floor or ceiling, by the first judge of the panel."""
    judge = results.context.judge(panel.curves[0].judge)
    for control, style in zip(figure.controls, LINE_STYLES, strict=False):
        setting = (results.context.dataset(figure.dataset), control.method, control.variant)
        value = results.measure(setting, panel.curves[0], attempt="").value
        if value is not None:
            label = f"control: {control.title}{f', by {judge}' if judge else ''}"
            ax.axhline(value, color=FAINT, ls=style, lw=1.1, label=label, zorder=2)


def _label_axes(ax: "Axes", figure: Curves, panel: Panel, label: str) -> None:
    ax.set(title=panel.title, xscale=figure.scale, xlabel=label)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.margins(y=0.12)
    if panel.percent:
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, -0.04), min(high, 1.04))
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def label_axis(figure: Curves, places: Places, results: Results) -> str:
    """The label of the x axis, with the judge that is used here, and with the facts that give its numbers a meaning."""
    if figure.x and results.context.judge(figure.x.judge):
        return f"{figure.axis} (measured here by {results.context.judge(figure.x.judge)})"
    facts = results.facts(*(key for _, key in places))
    stated = [f"{name} {fact_text(facts.get(name, []))}" for name in figure.states]
    return f"{figure.axis} ({', '.join(stated)})" if stated and places else figure.axis


def _notes(figure: Curves, values: Values, results: Results) -> list[str]:
    missing = {f"{variant}: {why}." for (_, method, variant), why in results.skipped.items() if method == figure.method}
    missing |= {f"{curve.title}: {value.reason}." for curve in values for value in values[curve] if value.reason}
    return [describe_counts(values) + results.context.about(figure), " ".join(sorted(missing)), figure.note]


def describe_counts(values: Values) -> str:
    """How many faces are behind a point; if curves differ, such as those of recovered images, how many of each."""
    titles: dict[int, list[str]] = {}
    for curve, measured in values.items():
        number = next((value.of for value in measured if value.of), 0)
        if number and curve.title not in titles.setdefault(number, []):
            titles[number].append(curve.title)
    if not titles:
        return "Nothing was measured. "
    if len(titles) == 1:
        return f"Each point is over {next(iter(titles))} faces. "
    counts = (f"{number} ({', '.join(names)})" for number, names in titles.items())
    return f"Number of images behind each point: {', '.join(counts)}. "
