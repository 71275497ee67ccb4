"""Figures of clusters: features in two dimensions, with the silhouette scores of their labels.

An image of clusters proves little, since t-SNE separates groups that hardly differ. So each panel also gives the
silhouette score of its labels in the features themselves, and in other features for comparison.
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from masquerade.core import canvas
from masquerade.core.annotations import ANNOTATION
from masquerade.core.canvas import COLORS, FAINT, INK, TILE
from masquerade.core.errors import ArchiveError
from masquerade.core.face_tables import FEATURES, stack
from masquerade.core.images import OK
from masquerade.papers.context import Context
from masquerade.papers.figure_declarations import Clustered, Clusters
from masquerade.params.matrix import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SeedFeatures = tuple[pd.DataFrame, Mapping[str, Any]]
"""The features of one seed, as `face_tables.read_features` returns them: (one row for each face, metadata)."""
PERPLEXITY = 30.0  # of t-SNE: van der Maaten and Hinton 2008, section 2 (5 to 50)
SHAPES = ("o", "^", "s", "D")
SIDE, WORDS = 2.1, 0.55
"""The side of a panel and the height of the legend below it, in inches."""


def score_silhouette(features: np.ndarray, labels: np.ndarray) -> float | None:
    """The silhouette score of ``labels`` (N,) in ``features`` (N, D), by Euclidean distances: -1 .. 1.

    The mean over faces of (b - a) / max(a, b); a and b are the mean distances to the face's own group and to the
    nearest other group (Rousseeuw 1987). Returns None when there is one label, or as many labels as faces.
    """
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(features, labels))


def project(features: np.ndarray) -> np.ndarray | str:
    """Features (N, D) in two dimensions, (N, 2), or the reason why there is no image of them.

    t-SNE starts from the principal components, with a fixed seed.
    """
    from sklearn.manifold import TSNE

    if len(features) < 3:
        return "fewer than three faces"
    if not np.ptp(features, axis=0).any():  # no principal component: scikit-learn 1.9 crashes
        return "all faces have the same feature"
    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(features)


def select_faces(panel: Clustered, rows: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The faces of a panel whose status is ok, and the label of each: a name of the panel, or a person."""
    rows = rows[rows["status"] == OK]
    if panel.label == "identity":
        rows = rows[rows["identity"].isin(rows["identity"].drop_duplicates().head(panel.people))]
        return rows, rows["identity"].to_numpy(str)
    column = f"{ANNOTATION}{panel.label}"
    rows = rows[rows[column].notna()]
    return rows, np.where(rows[column].astype(bool), *panel.names)


def draw(
    figure: Clusters,
    seeds: Sequence[SeedFeatures],
    skipped: Mapping[Setting, str],
    context: Context,
    outputs: Sequence[Path],
) -> None:
    """Draw every panel from the first seed. Silhouette scores are means over all seeds.

    ``seeds``: the features of each seed, in any order. ``outputs``: the files to write; the suffix (.png, .svg) selects
    the format. A panel whose attribute these faces are not annotated with says so. Raises ArchiveError when a feature
    is missing.
    """
    seeds = sorted(seeds, key=lambda seed: seed[1]["seed"])
    wide = SIDE * len(figure.panels)
    reason = "; ".join(skipped.values()) or "no features were written"
    with canvas.use_style():
        drawing, rows = canvas.make_sheet(wide, (SIDE, WORDS), len(figure.panels), _notes(figure, context))
        for panel, ax, below in zip(figure.panels, *rows, strict=True):
            ax.set(title=panel.title, xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color=TILE)
            below.axis("off")
            if not seeds:
                _reason(ax, reason)
            elif panel.label != "identity" and f"{ANNOTATION}{panel.label}" not in seeds[0][0]:
                _reason(ax, f"these faces have no annotation '{panel.label}'")
            else:
                _panel(figure, panel, ax, below, seeds)
        canvas.save_drawing(drawing, outputs, dpi=200)


def _panel(figure: Clusters, panel: Clustered, ax: "Axes", below: "Axes", seeds: Sequence[SeedFeatures]) -> None:
    faces, labels = select_faces(panel, seeds[0][0])
    names = panel.names or tuple(dict.fromkeys(labels))
    places = project(_vectors(faces, panel.features)) if len(faces) else "no face"
    if isinstance(places, str):
        _reason(ax, places)
    else:
        for number, name in enumerate(names):
            shape, color = SHAPES[number // len(COLORS) % len(SHAPES)], COLORS[number % len(COLORS)]
            group = labels == name
            label = f"{name} ({group.sum()})" if panel.names else None
            ax.scatter(*places[group].T, s=16, marker=shape, color=color, alpha=0.8, lw=0, label=label)
        ax.margins(0.08)
    score, other_score = _scores(panel, seeds, panel.features), _scores(panel, seeds, figure.against.features)
    ax.set_xlabel(f"silhouette {score} of {len(faces)} faces\n{figure.against.title}: {other_score}", fontsize=8)
    if panel.names and not isinstance(places, str):
        below.legend(*ax.get_legend_handles_labels(), loc="upper center", borderaxespad=0, handletextpad=0.1)
    elif not panel.names:
        below.text(0.5, 0.97, f"{len(names)} people,\na color and shape each", ha="center", va="top", fontsize=8,
                   color=FAINT, transform=below.transAxes)  # fmt: skip


def _reason(ax: "Axes", reason: str) -> None:
    """Show the reason why there is no image."""
    ax.set_facecolor(TILE)
    ax.text(
        0.5, 0.5, textwrap.fill(reason, 36), ha="center", va="center", fontsize=7, color=INK, transform=ax.transAxes
    )


def _scores(panel: Clustered, seeds: Sequence[SeedFeatures], features: str) -> str:
    """The silhouette score of a panel's labels, mean and standard deviation over the seeds, or 'none'."""
    values = []
    for rows, _ in seeds:
        faces, labels = select_faces(panel, rows)
        values.append(score_silhouette(_vectors(faces, features), labels) if len(faces) else None)
    if None in values:
        return "none"
    return f"{round(fmean(values), 2) + 0.0:.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _vectors(rows: pd.DataFrame, features: str) -> np.ndarray:
    """The features of one name, (N, D). Raises ArchiveError when there are none."""
    column = f"{FEATURES}{features}"
    if column not in rows:
        given = ", ".join(name.removeprefix(FEATURES) for name in rows if name.startswith(FEATURES))
        raise ArchiveError(f"The method gives no features '{features}'; it gives: {given or 'none'}.")
    return stack(rows[column])


def _notes(figure: Clusters, context: Context) -> list[str]:
    explanation = (
        "The silhouette of the labels (from -1 to 1; 0 means that the groups are not separated) is computed on the "
        f"features themselves, and below it on the {figure.against.title} that they were taken from. The image shows "
        "t-SNE of the features of the first seed; the distances between its groups have no meaning."
    )
    return [context.about(figure), explanation, figure.note]
