"""Draws curves over a knob of one method, and grids of images. The same inputs give the same bytes."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masquerade.core import canvas
from masquerade.core.canvas import COLORS, FAINT, INK, NOTES, TILE
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.papers import face_selection
from masquerade.papers.context import Context
from masquerade.papers.figure_declarations import Curve, Curves, Grid, MethodVariant, Panel, Picture, Threshold
from masquerade.papers.measured import Cells, Measured, fact_text
from masquerade.papers.reference import needs
from masquerade.params import sharing
from masquerade.params.matrix import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOT_SHOWN = "not shown"
"""Stands in the place of an image of a private dataset."""
GAP, HEAD = 1 / 32, 7 / 32
"""The space between the images of a grid, and above them for one line of titles, in inches."""
LINE = 4 / 32
"""What each further line of a title adds to the space above."""


def curves(
    figure: Curves,
    cells: Iterable[Mapping[str, Any]],
    skipped: Mapping[Setting, str],
    context: Context,
    outputs: Sequence[Path],
) -> None:
    """Draw the metrics of one method over its variants, with the paper's numbers as hollow markers.

    ``cells``: the metrics of every cell, all seeds. A band shows the interval of each number. The notes below the
    figure give the reason for each missing point. ``outputs``: the files to write; the suffix (.png, .svg) selects the
    format.
    """
    measured = Cells(cells)
    places = _places(figure, measured, context)
    notes = _curve_notes(figure, places, measured, skipped, context)
    entries = max(
        sum(1 + bool(curve.markers) + bool(curve.threshold) for curve in panel.curves) for panel in figure.panels
    )
    wide, legend = 3.7 * len(figure.panels), 0.2 * (entries + len(figure.controls))
    with canvas.use_style():
        drawing, rows = canvas.make_sheet(wide, (2.7, legend), len(figure.panels), notes)
        for panel, ax, below in zip(figure.panels, *rows, strict=True):
            _panel(figure, panel, ax, places, measured, context)
            names = below.legend(*ax.get_legend_handles_labels(), loc="upper left", handlelength=2.6, borderaxespad=0)
            names.set_in_layout(False)
            below.axis("off")
        canvas.save_drawing(drawing, outputs, dpi=200)


def _places(figure: Curves, cells: Cells, context: Context) -> list[tuple[float, Setting]]:
    """(x, (dataset, method, variant)) of every variant that was measured and has an x, by x."""
    places, dataset = [], context.dataset(figure.dataset)
    for _, method, variant in needs(figure, cells.variants(dataset, figure.method)):
        key = (dataset, method, variant)
        values = [cells.measure(key, figure.x, context).value] if figure.x else cells.facts(key).get(figure.fact, [])
        if method == figure.method and len(values) == 1 and values[0] is not None:
            places.append((float(values[0]), key))
    return sorted(places)


def _panel(
    figure: Curves, panel: Panel, ax: "Axes", places: Sequence[tuple[float, Setting]], cells: Cells, context: Context
) -> None:
    for number, (color, curve) in enumerate(zip(COLORS, panel.curves, strict=False)):
        values = [cells.measure(key, curve, context) for _, key in places]
        _curve(ax, curve, color, [x for x, _ in places], values, context)
        if curve.threshold:
            _threshold(ax, curve, curve.threshold, color, number)
    for control, style in zip(figure.controls, (":", "--", "-."), strict=False):
        _control(ax, panel, control, style, cells, context, context.dataset(figure.dataset))
    ax.set(title=panel.title, xscale=figure.scale, xlabel=_axis(figure, places, cells, context))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.margins(y=0.12)
    if panel.percent:
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, -0.04), min(high, 1.04))
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def _curve(
    ax: "Axes", curve: Curve, color: str, at: Sequence[float], values: Sequence[Measured], context: Context
) -> None:
    judge = f"here by {context.judge(curve.judge)}" if context.is_replaced(curve.judge) else "measured here"
    label = f"{curve.title}, {judge}"
    kept = [(x, value) for x, value in zip(at, values, strict=True) if value.value is not None]
    if kept:
        x, y = (np.array(column) for column in zip(*((x, value.value) for x, value in kept), strict=True))
        style = {"lw": 1.8, "ls": "-"} if curve.printed else {"lw": 1.1, "ls": (0, (5, 1.5))}
        ax.plot(x, y, color=color, marker="o", ms=3.5 if curve.printed else 2.5, label=label, zorder=3, **style)
        low, high = np.array([value.interval or (value.value, value.value) for _, value in kept]).T
        ax.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
    if curve.markers:
        printed = ((marker.at, marker.printed.value) for marker in curve.markers if marker.printed is not None)
        x, y = zip(*printed, strict=True)
        sources = " and ".join(dict.fromkeys(marker.source for marker in curve.markers))
        label = f"{curve.title}, printed ({sources})"
        ax.plot(x, y, ls="", marker="D", ms=6, mfc="white", mec=color, mew=1.4, label=label, zorder=4)


def _threshold(ax: "Axes", curve: Curve, threshold: Threshold, color: str, number: int) -> None:
    """A dotted line. The dots of curve ``number`` lie between those of its neighbors, which may have the same one."""
    label = f"{curve.title}, threshold {threshold.printed.text}, printed ({threshold.source})"
    ax.axhline(threshold.printed.value, color=color, lw=1.2, ls=(4 * number, (3, 5)), label=label, zorder=2)


def _control(
    ax: "Axes", panel: Panel, control: MethodVariant, style: str, cells: Cells, context: Context, dataset: str
) -> None:
    """A horizontal line for a control, by the first judge of the panel: floor or ceiling."""
    value = cells.measure((dataset, control.method, control.variant), panel.curves[0], context, attempt="")
    if value.value is not None:
        judge = context.judge(panel.curves[0].judge)
        label = f"control: {control.title}{f', by {judge}' if judge else ''}"
        ax.axhline(value.value, color=FAINT, ls=style, lw=1.1, label=label, zorder=2)


def _curve_notes(
    figure: Curves,
    places: Sequence[tuple[float, Setting]],
    cells: Cells,
    skipped: Mapping[Setting, str],
    context: Context,
) -> list[str]:
    over = _count_images(figure, places, cells, context)
    left_out = {f"{variant}: {why}." for (_, method, variant), why in skipped.items() if method == figure.method}
    for curve in (curve for panel in figure.panels for curve in panel.curves):
        values = [cells.measure(key, curve, context) for _, key in places]
        left_out |= {f"{curve.title}: {value.reason}." for value in values if value.reason}
    return [over + context.about(figure), " ".join(sorted(left_out)), figure.note]


def _count_images(figure: Curves, places: Sequence[tuple[float, Setting]], cells: Cells, context: Context) -> str:
    """How many faces are behind a point; if curves differ, such as those of recovered images, how many of each."""
    titles: dict[int, list[str]] = {}
    for curve in (curve for panel in figure.panels for curve in panel.curves):
        values = (cells.measure(key, curve, context) for _, key in places)
        number = next((value.of for value in values if value.of), 0)
        if number and curve.title not in titles.setdefault(number, []):
            titles[number].append(curve.title)
    if not titles:
        return "Nothing was measured. "
    if len(titles) == 1:
        return f"Each point is over {next(iter(titles))} faces. "
    counts = (f"{number} ({', '.join(names)})" for number, names in titles.items())
    return f"Pictures behind a point: {', '.join(counts)}. "


def _axis(figure: Curves, places: Sequence[tuple[float, Setting]], cells: Cells, context: Context) -> str:
    """The label of the x axis, with the judge that is used here, and with the facts that give its numbers a meaning."""
    if figure.x and context.judge(figure.x.judge):
        return f"{figure.axis} (here by {context.judge(figure.x.judge)})"
    facts = [cells.facts(key) for _, key in places]
    stated = [
        f"{name} {fact_text([value for fact in facts for value in fact.get(name, [])])}" for name in figure.states
    ]
    return f"{figure.axis} ({', '.join(stated)})" if stated and places else figure.axis


@dataclass(frozen=True)
class GridArchives:
    """The images behind a grid.

    ``source``: the originals. ``derived``: the anonymized faces, any seeds, in any order. ``attempts``: further images
    of the same faces, for columns that show one. ``distances``: see `face_selection.distances`; None if the figure does
    not use them. ``private``: no image may be drawn.
    """

    source: FaceArchive
    derived: Sequence[FaceArchive]
    attempts: Sequence[FaceArchive] = ()
    distances: face_selection.Distances | None = None
    private: bool = False

    def originals(self, ids: Sequence[str]) -> np.ndarray:
        """The original images of these faces, float32 (N, 3, H, W) in [-1, 1]."""
        return self.source.load(rows=self.source.index.set_index("id", drop=False).loc[list(ids)]).images


def grid(
    figure: Grid, images: GridArchives, skipped: Mapping[Setting, str], context: Context, outputs: Sequence[Path]
) -> None:
    """Draw faces: the original first, then the image of each method. A refusal is a gray tile with its reason.

    The notes name columns that have no image, and why; of private images they say why none is drawn. A column may show
    its `difference` to the original. Of several seeds the figure shows the draw whose distance is closest to the face's
    mean, or the first.
    """
    archives, attempts = (face_selection.by_variant(part) for part in (images.derived, images.attempts))
    declared_columns = _columns(figure, archives, skipped, context, attempts)
    columns = [column for column in declared_columns if not column[-1]]
    ids = face_selection.faces(figure, images.source, images.distances, images.attempts)
    notes = [context.about(figure), _list_left_out(declared_columns), figure.note]
    if images.private:
        ids, notes = ids[:1], [sharing.explain_withheld(context.dataset(figure.dataset)), *notes]
    originals = images.originals(ids)
    with canvas.use_style():
        drawing, tiles = _mosaic(len(ids), ["original", *(title for title, *_ in columns)], notes)
        for face, original, row in zip(ids, originals, tiles, strict=True):
            _tile(row[0], NOT_SHOWN if images.private else original)
            for (_, key, declared, _), ax in zip(columns, row[1:], strict=True):
                if images.private:
                    image: np.ndarray | str = NOT_SHOWN
                elif declared.attempt:
                    image = face_selection.attempt(face, attempts[key], declared)
                else:
                    image = face_selection.draw(face, archives[key], key, images.distances)
                _tile(ax, difference(image, original, declared.difference) if declared.difference else image)
        side = originals.shape[-1]
        canvas.save_drawing(drawing, outputs, dpi=side * max(1, 192 // side))


def _list_left_out(columns: Iterable[tuple[str, tuple[str, str], Picture, str]]) -> str:
    """The columns without an image, by their reason; '' if there is none."""
    titles: dict[str, list[str]] = {}
    for title, *_, reason in columns:
        if reason:
            titles.setdefault(reason, []).append(" ".join(title.split()))
    return " ".join(f"Left out: {', '.join(names)} ({reason})." for reason, names in titles.items())


def difference(picture: np.ndarray | str, original: np.ndarray, factor: float) -> np.ndarray | str:
    """``factor`` |image - original| on the scale of an image: no difference is -1 (black), and 1 is the most.

    Both: float32 (3, H, W) in [-1, 1]. The reason why there is no image stays one.
    """
    return picture if isinstance(picture, str) else np.minimum(factor * np.abs(picture - original) - 1, 1)


def _columns(
    figure: Grid,
    archives: Mapping[tuple[str, str], Sequence[FaceArchive]],
    skipped: Mapping[Setting, str],
    context: Context,
    attempts: Mapping[tuple[str, str], Sequence[FaceArchive]],
) -> list[tuple[str, tuple[str, str], Picture, str]]:
    """(title, (method, variant), which image, why it is missing) of every column.

    Variants of one pattern are ordered by their fact.
    """
    dataset, columns = context.dataset(figure.dataset), []
    for declared in figure.columns:
        part = figure.model_copy(update={"columns": (declared,)})
        offered = [*archives, *((method, variant) for place, method, variant in skipped if place == dataset)]
        ordered = []
        for _, method, variant in needs(part, offered):
            key = (method, variant)
            facts = archives[key][0].metadata.get("statement", {}) if key in archives else {}
            title = declared.title.format(**facts) if facts or "{" not in declared.title else variant
            made, why = (attempts, "nothing was tried here") if declared.attempt else (archives, "was not run")
            reason = "" if key in made else skipped.get((dataset, *key), why)
            ordered.append((facts.get(figure.fact, np.inf), title, key, reason))
        ordered.sort(key=lambda item: item[0])
        columns += [(title, key, declared, reason) for _, title, key, reason in ordered]
    return columns


def _mosaic(rows: int, titles: Sequence[str], notes: Iterable[str]) -> tuple["Figure", np.ndarray]:
    """Square axes of one inch, with titles above the first row.

    Every pixel of an image stays whole if the dpi is a multiple of the image's side.
    """
    import matplotlib.pyplot as plt

    wide = len(titles) * (1 + GAP) + GAP
    text, below = canvas.wrap_notes(notes, wide)
    head = HEAD + LINE * max(title.count("\n") for title in titles)
    high = head + rows * (1 + GAP) + below
    drawing, tiles = plt.subplots(rows, len(titles), figsize=(wide, high), squeeze=False, gridspec_kw={
        "left": GAP / wide, "right": 1 - GAP / wide, "bottom": (below + GAP) / high, "top": 1 - head / high,
        "wspace": GAP, "hspace": GAP,
    })  # fmt: skip
    for title, ax in zip(titles, tiles[0], strict=True):
        ax.set_title(title, fontsize=8, fontweight="normal", loc="center", pad=4)
    drawing.text(GAP / wide, (below - GAP) / high, text, **NOTES)
    return drawing, tiles


def _tile(ax: "Axes", content: np.ndarray | str) -> None:
    """An image, float32 (3, H, W) in [-1, 1], or the reason why there is none."""
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if isinstance(content, str):
        ax.set_facecolor(TILE)
        ax.set_box_aspect(1)
        ax.text(0.5, 0.5, textwrap.fill(content, 16), ha="center", va="center", fontsize=5.5, color=INK,
                transform=ax.transAxes, wrap=True)  # fmt: skip
    else:
        ax.imshow(to_uint8(content), interpolation="nearest")
