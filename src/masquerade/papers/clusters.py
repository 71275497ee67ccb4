"""Figures of clusters: features in two dimensions, and how well their labels are told apart where they lie.

A picture of clusters proves little: t-SNE pulls groups apart that are hardly apart. So each panel says the silhouette
score of its labels in the features themselves, and in others for comparison.
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from masquerade.errors import ArchiveError
from masquerade.features import ATTRIBUTE, PREFIX
from masquerade.images import OK
from masquerade.metrics import stack
from masquerade.papers import canvas
from masquerade.papers.canvas import COLOURS, FAINT, INK, TILE
from masquerade.papers.measured import Context
from masquerade.papers.reference import Clustered, Clusters, Need

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = tuple[pd.DataFrame, Mapping[str, Any]]
"""What `features.read` gives."""
PERPLEXITY = 30.0  # of t-SNE: van der Maaten and Hinton 2008, section 2 (5 to 50)
SHAPES = ("o", "^", "s", "D")
SIDE, WORDS = 2.1, 0.55
"""Of a panel, and of the legend below it, in inches."""


def silhouette(features: np.ndarray, labels: np.ndarray) -> float | None:
    """How well ``labels`` (N,) are told apart in ``features`` (N, D): -1 .. 1, by Euclidean distances.

    The mean over faces of (b - a) / max(a, b), a and b being the mean distances to its own group and to the nearest
    other one (Rousseeuw 1987). None where there is one label, or one for every face.
    """
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(features, labels))


def projected(features: np.ndarray) -> np.ndarray | str:
    """Features (N, D) in two dimensions, (N, 2): t-SNE from their principal components, with a fixed seed.

    Or the reason why there is no picture of them.
    """
    from sklearn.manifold import TSNE

    if len(features) < 3:
        return "fewer than three faces"
    if not np.ptp(features, axis=0).any():  # no principal component: scikit-learn 1.9 crashes
        return "all faces have the same feature"
    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(features)


def chosen(panel: Clustered, rows: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The faces of a panel that are ok, and the label of each: a name of the panel, or a person.

    Raises ArchiveError where nobody said whether these faces have the attribute.
    """
    rows = rows[rows["status"] == OK]
    if panel.label == "identity":
        rows = rows[rows["identity"].isin(rows["identity"].drop_duplicates().head(panel.people))]
        return rows, rows["identity"].to_numpy(str)
    column = f"{ATTRIBUTE}{panel.label}"
    if column not in rows:
        raise ArchiveError(f"These faces have no annotation '{panel.label}', which the panel '{panel.title}' asks for.")
    rows = rows[rows[column].notna()]
    return rows, np.where(rows[column].astype(bool), *panel.names)


def clusters(
    figure: Clusters, cells: Sequence[Cell], skipped: Mapping[Need, str], context: Context, outputs: Sequence[Path]
) -> None:
    """Draw every panel from the first seed; silhouettes are means over all of them.

    ``cells``: the features of each seed, in any order. ``outputs``: where to write; the suffix (.png, .svg) says how.
    Raises ArchiveError where a feature or an annotation is missing.
    """
    cells = sorted(cells, key=lambda cell: cell[1]["seed"])
    wide = SIDE * len(figure.panels)
    why = "; ".join(skipped.values()) or "no features were written"
    with canvas.style():
        drawing, rows = canvas.sheet(wide, (SIDE, WORDS), len(figure.panels), _notes(figure, context))
        for panel, ax, below in zip(figure.panels, *rows, strict=True):
            ax.set(title=panel.title, xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color=TILE)
            below.axis("off")
            if cells:
                _panel(figure, panel, ax, below, cells)
            else:
                _instead(ax, why)
        canvas.save(drawing, outputs, dpi=200)


def _panel(figure: Clusters, panel: Clustered, ax: "Axes", below: "Axes", cells: Sequence[Cell]) -> None:
    faces, labels = chosen(panel, cells[0][0])
    names = panel.names or tuple(dict.fromkeys(labels))
    places = projected(_vectors(faces, panel.features)) if len(faces) else "no face"
    if isinstance(places, str):
        _instead(ax, places)
    else:
        for number, name in enumerate(names):
            shape, colour = SHAPES[number // len(COLOURS) % len(SHAPES)], COLOURS[number % len(COLOURS)]
            here = labels == name
            said = f"{name} ({here.sum()})" if panel.names else None
            ax.scatter(*places[here].T, s=16, marker=shape, color=colour, alpha=0.8, lw=0, label=said)
        ax.margins(0.08)
    told = f"{_apart(panel, cells, panel.features)} of {len(faces)} faces\n"
    ax.set_xlabel(
        f"silhouette {told}{figure.against.title}: {_apart(panel, cells, figure.against.features)}", fontsize=8
    )
    if panel.names and not isinstance(places, str):
        below.legend(*ax.get_legend_handles_labels(), loc="upper center", borderaxespad=0, handletextpad=0.1)
    elif not panel.names:
        below.text(0.5, 0.97, f"{len(names)} people,\na colour and shape each", ha="center", va="top", fontsize=8,
                   color=FAINT, transform=below.transAxes)  # fmt: skip


def _instead(ax: "Axes", why: str) -> None:
    """The reason in the place of a picture."""
    ax.set_facecolor(TILE)
    ax.text(0.5, 0.5, textwrap.fill(why, 36), ha="center", va="center", fontsize=7, color=INK, transform=ax.transAxes)


def _apart(panel: Clustered, cells: Sequence[Cell], features: str) -> str:
    """The silhouette of a panel's labels, mean and standard deviation over the seeds; or that there is none."""
    values = []
    for rows, _ in cells:
        faces, labels = chosen(panel, rows)
        values.append(silhouette(_vectors(faces, features), labels) if len(faces) else None)
    if None in values:
        return "none"
    return f"{round(fmean(values), 2) + 0.0:.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _vectors(rows: pd.DataFrame, features: str) -> np.ndarray:
    """(N, D). Raises ArchiveError where there are none of that name."""
    column = f"{PREFIX}{features}"
    if column not in rows:
        known = ", ".join(name.removeprefix(PREFIX) for name in rows if name.startswith(PREFIX))
        raise ArchiveError(f"The method gives no features '{features}'; it gives: {known or 'none'}.")
    return stack(rows[column])


def _notes(figure: Clusters, context: Context) -> list[str]:
    how = (
        "Silhouette (-1 to 1; 0: not told apart) of the labels in the features themselves, and below it in the "
        f"{figure.against.title} that they were taken from. The picture is t-SNE of the features of the first seed: "
        "how far apart groups look in it says nothing."
    )
    return [canvas.where(figure, context), how, figure.note]
