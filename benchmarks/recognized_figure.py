"""Draws docs/recognized.svg, "Who is still recognized?", from benchmarks/measured.json (`make generated` writes it).

Each row is a method. The hollow dot is the share of images that the naive recognizer identifies, which knows
unprotected faces alone and is what most papers report; the filled dot is that of the strongest attacker, who knows the
method.
"""

import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from results_tables import ATTACKED, CONTROLS

SCALE = "evening"
PEOPLE, IMAGES = 60, 180
"""The tested people and images of `SCALE` (scales/evening.yaml)."""
NAIVE, STRONGEST = "attack_rank1_rate/naive", "attack_rank1_rate/strongest"
NOTE = (
    f"Scale {SCALE}: computer-rendered faces of 64 × 64 pixels, our re-implementations of the methods, seed 0. "
    "Thin lines: 95 % intervals over people."
)
BLACKOUT = "blackout/control"
INFORMED, UNINFORMED, CONTROL, GRID = "#b3321f", "#1f5fa8", "#707070", "#e4e4e4"


class Rate(NamedTuple):
    """A share of images, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class Row(NamedTuple):
    label: str
    paper: bool
    """Whether it is one of the five papers whose tables are rebuilt."""
    control: bool
    naive: Rate
    strongest: Rate


def read_rate(text: str) -> Rate:
    """``0.54 [0.48, 0.60]`` as numbers."""
    return Rate(*map(float, re.findall(r"\d+\.\d+", text)))


def read_rows(values: dict[str, dict[str, Any]]) -> list[Row]:
    """The attacked methods and two controls, those whose strongest attacker identifies the fewest images first."""
    controls = {label.strip("*"): name for label, name in CONTROLS.items() if name != BLACKOUT}
    return sorted(
        (
            Row(
                label.strip("*"),
                paper=label.startswith("**"),
                control=label in controls,
                naive=read_rate(values[name][NAIVE][0]),
                strongest=read_rate(values[name][STRONGEST][0]),
            )
            for label, name in (ATTACKED | controls).items()
        ),
        key=lambda row: row.strongest.value,
    )


def draw(root: Path) -> str:
    """The figure as SVG. The same numbers give the same text."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    values = json.loads((root / "benchmarks/measured.json").read_text(encoding="utf-8"))[SCALE]["values"]
    rows = read_rows(values)
    blackout = read_rate(values[BLACKOUT][STRONGEST][0])
    with mpl.rc_context({"svg.hashsalt": "recognized", "font.size": 10, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(9, 7.4), layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        for line, label in ((1 / PEOPLE, "chance"), (blackout.value, "strongest attacker on blacked-out faces")):
            axes.axvline(line, color=CONTROL, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axes.text(line, -1.0, f" {label}", color=CONTROL, fontsize=8.5, va="center", ha="left")
        for height, row in enumerate(rows):
            informed, uninformed = (CONTROL, CONTROL) if row.control else (INFORMED, UNINFORMED)
            ends = row.naive.value, row.strongest.value
            axes.plot(ends, (height, height), color=informed, alpha=0.35, linewidth=3, solid_capstyle="round", zorder=2)
            for rate, color, face, offset in (
                (row.naive, uninformed, "white", -0.16),
                (row.strongest, informed, informed, 0.16),
            ):
                axes.plot((rate.low, rate.high), (height + offset,) * 2, color=color, linewidth=1, alpha=0.8, zorder=2)
                axes.plot(rate.value, height, "o", color=color, markerfacecolor=face, markersize=7.5, zorder=3)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        for label, row in zip(axes.get_yticklabels(), rows, strict=True):
            label.set(fontweight="bold" if row.paper else "normal", fontstyle="italic" if row.control else "normal")
        axes.set(xlim=(-0.015, 1.02), ylim=(len(rows) - 0.4, -1.5))
        axes.set_xlabel(f"share of {IMAGES} images of {PEOPLE} people whose person is the recognizer's first answer")
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}".replace("%", " %"))
        axes.xaxis.grid(visible=True, color=GRID, zorder=0)
        axes.tick_params(length=0)
        axes.spines[["top", "left", "right"]].set_visible(False)
        for color, face, label in (
            (UNINFORMED, "white", "naive recognizer: knows unprotected faces alone"),
            (INFORMED, INFORMED, "strongest attacker: knows the method"),
        ):
            axes.plot([], [], "o", color=color, markerfacecolor=face, markersize=7.5, label=label)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle("Who is still recognized?", x=0.01, ha="left", fontsize=15, fontweight="bold")
        axes.set_title(NOTE, loc="left", x=-0.23, fontsize=8.5, color=CONTROL)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r" +$", "", buffer.getvalue(), flags=re.MULTILINE)
