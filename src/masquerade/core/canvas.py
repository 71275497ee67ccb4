"""What all figures share: style, sheet and file output."""

import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.core import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "masquerade",  # ids of an SVG, which are random otherwise
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito (2008): color-blind readers can distinguish them, and so can readers of gray prints."""
LINE_STYLES = (":", "--", "-.")
INK, FAINT, TILE = "#222222", "#777777", "#e4e4e4"
NOTES = {"va": "top", "fontsize": 6.5, "color": FAINT, "linespacing": 1.3}
LETTER = 0.052
"""Width of a letter of the notes in inches."""
MARGIN = 0.06
"""Inches on each side of a sheet."""


def make_sheet(
    wide: float, heights: Sequence[float], columns: int, notes: Iterable[str]
) -> tuple["Drawing", list[list["Axes"]]]:
    """A drawing ``wide`` inches wide with one row of ``columns`` axes for each of ``heights`` (in inches).

    The notes stand below. Returns the drawing and its axes by row.
    """
    import matplotlib.pyplot as plt
    from matplotlib.transforms import blended_transform_factory

    text, notes_height = wrap_notes(notes, wide)
    drawing = plt.figure(figsize=(wide, sum(heights) + notes_height), layout="constrained")
    engine: Any = drawing.get_layout_engine()
    engine.set(w_pad=MARGIN, h_pad=0.05, wspace=0, hspace=0)
    spec = drawing.add_gridspec(len(heights) + 1, columns, height_ratios=[*heights, notes_height])
    axes = [[drawing.add_subplot(spec[row, column]) for column in range(columns)] for row in range(len(heights))]
    foot = drawing.add_subplot(spec[-1, :])
    foot.axis("off")
    # from the edge of the sheet: the axes stand further in, by the width of their labels
    place = blended_transform_factory(drawing.transFigure, foot.transAxes)
    foot.text(MARGIN / wide, 1, text, transform=place, in_layout=False, **NOTES)
    return drawing, axes


def wrap_notes(notes: Iterable[str], wide: float) -> tuple[str, float]:
    """The notes as lines that fit ``wide`` inches, and their height in inches."""
    text = "\n".join(textwrap.fill(note, int((wide - 2 * MARGIN) / LETTER)) for note in notes if note)
    return text, 0.125 * (text.count("\n") + 1) + 3 / 32


def use_style() -> AbstractContextManager:
    """A context with the style of every figure."""
    import matplotlib

    matplotlib.use("Agg")
    return matplotlib.rc_context(STYLE)


def save_drawing(drawing: "Drawing", outputs: Sequence[Path], dpi: int) -> None:
    """Write a drawing to files (.svg or .png) and close it. No file holds a time or the name of a program."""
    import matplotlib.pyplot as plt

    no_metadata: dict[str, dict[str, None]] = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
    for path in map(Path, outputs):
        with files.write_atomically(path) as temporary:
            drawing.savefig(temporary, format=path.suffix[1:], dpi=dpi, metadata=no_metadata[path.suffix])
    plt.close(drawing)
