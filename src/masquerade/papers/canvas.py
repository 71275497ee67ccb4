"""What all figures share: their look, the sheet that they are drawn on, and how they are written."""

import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from masquerade.papers.measured import Context
from masquerade.papers.reference import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

STYLE = {
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
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito (2008): told apart by colour-blind readers and in grey print."""
INK, FAINT, TILE = "#222222", "#777777", "#e4e4e4"
NOTES = {"va": "top", "fontsize": 6.5, "color": FAINT, "linespacing": 1.3}
LETTER = 0.052
"""Width of a letter of the notes in inches."""


def where(figure: Figure, context: Context) -> str:
    """On whose faces, at which scale, by which code."""
    here = context.dataset(figure.dataset)
    faces = f"{here} in the place of {figure.dataset.name}" if here != figure.dataset.role else figure.dataset.name
    return f"Scale {context.scale}, {faces}, commit {context.commit}. {context.caution}".rstrip()


def sheet(
    wide: float, heights: Sequence[float], columns: int, notes: Iterable[str]
) -> tuple["Drawing", list[list["Axes"]]]:
    """A drawing ``wide`` inches wide: rows of axes of the given heights in inches, and the notes below them."""
    import matplotlib.pyplot as plt

    text, below = lines(notes, wide)
    drawing = plt.figure(figsize=(wide, sum(heights) + below), layout="constrained")
    drawing.get_layout_engine().set(w_pad=0.06, h_pad=0.05, wspace=0, hspace=0)
    spec = drawing.add_gridspec(len(heights) + 1, columns, height_ratios=[*heights, below])
    axes = [[drawing.add_subplot(spec[row, column]) for column in range(columns)] for row in range(len(heights))]
    foot = drawing.add_subplot(spec[-1, :])
    foot.axis("off")
    foot.text(0, 1, text, transform=foot.transAxes, **NOTES)
    return drawing, axes


def lines(notes: Iterable[str], wide: float) -> tuple[str, float]:
    """The notes as lines that fit ``wide`` inches, and the inches that they are high."""
    text = "\n".join(textwrap.fill(note, int(wide / LETTER)) for note in notes if note)
    return text, 0.125 * (text.count("\n") + 1) + 3 / 32


def style() -> AbstractContextManager:
    """The look of every figure, for as long as the context lasts."""
    import matplotlib

    matplotlib.use("Agg")
    return matplotlib.rc_context(STYLE)


def save(drawing: "Drawing", outputs: Sequence[Path], dpi: int) -> None:
    """Write under a temporary name and rename; nothing in the file depends on when or by whom it was made."""
    import matplotlib.pyplot as plt

    unsaid: dict[str, dict[str, None]] = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
    for path in map(Path, outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}")
        drawing.savefig(temporary, format=path.suffix[1:], dpi=dpi, metadata=unsaid[path.suffix])
        temporary.replace(path)
    plt.close(drawing)
