"""Draws grids of images. Faces, and one of several draws of a face, are selected by rule and never by hand.

The same inputs give the same bytes.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from masquerade.core import canvas, face_tables
from masquerade.core.canvas import INK, NOTES, TILE
from masquerade.core.errors import ArchiveError
from masquerade.core.face_tables import stack
from masquerade.core.images import OK, FaceArchive, to_uint8
from masquerade.papers.context import Context
from masquerade.papers.figure_declarations import Grid, Picture
from masquerade.papers.reference import needs
from masquerade.params import sharing
from masquerade.params.matrix import Cell, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOT_SHOWN = "not shown"
"""Stands in the place of an image of a private dataset."""
GAP, HEAD = 1 / 32, 7 / 32
"""The space between the images of a grid, and above them for one line of titles, in inches."""
LINE = 4 / 32
"""What each further line of a title adds to the space above."""
Archives = Mapping[tuple[str, str], Sequence[FaceArchive]]
"""(method, variant) -> its archives, by seed."""
Distances: TypeAlias = pd.DataFrame
"""One row for each draw: method, variant, seed, source_id, distance."""


@dataclass(frozen=True)
class GridArchives:
    """The images behind a grid.

    ``source``: the originals. ``derived``: the anonymized faces, any seeds, in any order. ``attempts``: further images
    of the same faces, for columns that show one. ``distances``: see `measure_distances`; None if the figure does not
    use them. ``private``: no image may be drawn.
    """

    source: FaceArchive
    derived: Sequence[FaceArchive]
    attempts: Sequence[FaceArchive] = ()
    distances: Distances | None = None
    private: bool = False


class ImageColumn(NamedTuple):
    """A column of a grid: its title, (method, variant), which image it shows, and why it has none ('': it has)."""

    title: str
    key: tuple[str, str]
    picture: Picture
    reason: str


def draw(
    figure: Grid, images: GridArchives, skipped: Mapping[Setting, str], context: Context, outputs: Sequence[Path]
) -> None:
    """Draw faces: the original first, then the image of each method. A refusal is a gray tile with its reason.

    The notes name columns that have no image, and why; of private images they say why none is drawn. A column may show
    its difference to the original. Of several seeds the figure shows the draw whose distance is closest to the face's
    mean, or the first.
    """
    archives, attempts = (group_by_variant(part) for part in (images.derived, images.attempts))
    declared = list_columns(figure, archives, attempts, skipped, context)
    columns = [column for column in declared if not column.reason]
    ids = select_faces(figure, images.source, images.distances, images.attempts)
    notes = [context.about(figure), _list_left_out(declared), figure.note]
    if images.private:
        ids, notes = ids[:1], [sharing.explain_withheld(context.dataset(figure.dataset)), *notes]
    originals = images.source.load(rows=images.source.index.set_index("id", drop=False).loc[ids]).images
    rows: list[list[np.ndarray | str]] = []
    for face, original in zip(ids, originals, strict=True):
        row: list[np.ndarray | str] = [original]
        for _, key, picture, _ in columns:
            image = (
                load_attempt(face, attempts[key], picture)
                if picture.attempt
                else load_draw(face, archives[key], key, images.distances)
            )
            if picture.difference and not isinstance(image, str):  # no difference is -1 (black), and 1 is the most
                image = np.minimum(picture.difference * np.abs(image - original) - 1, 1)
            row.append(image)
        rows.append([NOT_SHOWN] * len(row) if images.private else row)
    draw_tiles(["original", *(column.title for column in columns)], rows, notes, outputs, originals.shape[-1])


def draw_tiles(
    titles: Sequence[str],
    rows: Sequence[Sequence[np.ndarray | str]],
    notes: Iterable[str],
    outputs: Sequence[Path],
    side: int,
) -> None:
    """Draw rows of images, float32 (3, side, side) in [-1, 1], or of texts on gray, under one row of titles."""
    with canvas.use_style():
        drawing, tiles = _mosaic(len(rows), titles, notes)
        for row, axes in zip(rows, tiles, strict=True):
            for content, ax in zip(row, axes, strict=True):
                _fill_tile(ax, content)
        canvas.save_drawing(drawing, outputs, dpi=side * max(1, 192 // side))


def _list_left_out(columns: Iterable[ImageColumn]) -> str:
    """The columns without an image, by their reason; '' if there is none."""
    titles: dict[str, list[str]] = {}
    for column in columns:
        if column.reason:
            titles.setdefault(column.reason, []).append(" ".join(column.title.split()))
    return " ".join(f"Left out: {', '.join(names)} ({reason})." for reason, names in titles.items())


def list_columns(
    figure: Grid, archives: Archives, attempts: Archives, skipped: Mapping[Setting, str], context: Context
) -> list[ImageColumn]:
    """Every column. Variants of one pattern are ordered by their fact."""
    dataset, columns = context.dataset(figure.dataset), []
    offered = [*archives, *((method, variant) for place, method, variant in skipped if place == dataset)]
    for picture in figure.columns:
        ordered = []
        for _, method, variant in needs(figure.model_copy(update={"columns": (picture,)}), offered):
            key = (method, variant)
            facts = archives[key][0].metadata.get("statement", {}) if key in archives else {}
            title = picture.title.format(**facts) if facts or "{" not in picture.title else key[1]
            built, why = (attempts, "nothing was tried here") if picture.attempt else (archives, "was not run")
            reason = "" if key in built else skipped.get((dataset, method, variant), why)
            ordered.append((facts.get(figure.fact, np.inf), ImageColumn(title, key, picture, reason)))
        columns += [column for _, column in sorted(ordered, key=lambda item: item[0])]
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


def _fill_tile(ax: "Axes", content: np.ndarray | str) -> None:
    """An image, float32 (3, H, W) in [-1, 1], or the reason why there is none."""
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    if isinstance(content, str):
        ax.set_facecolor(TILE)
        ax.set_box_aspect(1)
        ax.text(0.5, 0.5, textwrap.fill(content, 16), ha="center", va="center", fontsize=5.5, color=INK,
                transform=ax.transAxes, wrap=True)  # fmt: skip
    else:
        ax.imshow(to_uint8(content), interpolation="nearest")


def group_by_variant(archives: Sequence[FaceArchive]) -> Archives:
    """Archives by (method, variant), each by seed."""
    grouped: dict[tuple[str, str], list[FaceArchive]] = {}
    for archive in sorted(archives, key=lambda archive: archive.metadata["seed"]):
        grouped.setdefault((archive.metadata["method"], archive.metadata["variant"]), []).append(archive)
    return grouped


def measure_distances(source: Path, derived: Mapping[Cell, Path], judge: str) -> Distances:
    """Euclidean distance between the embeddings of every original and each of its draws.

    ``source``: measurements of the originals; ``derived``: those of each cell. A draw has NaN if it
    was refused or if the judge finds no face in it. Raises ArchiveError when the judge or an original was not measured.
    """
    column = f"{judge}.embedding"
    original = face_tables.read(source)
    tables = {cell: face_tables.read(path) for cell, path in derived.items()}
    for path, table in [(source, original), *((derived[cell], table) for cell, table in tables.items())]:
        if column not in table:
            raise ArchiveError(f"{path} holds no {column}: is '{judge}' among measure.judges of params.yaml?")
    originals = original.set_index("id")[column]
    frames = []
    for cell, draws in tables.items():
        if not draws["source_id"].isin(originals.index).all():
            raise ArchiveError(f"{source} does not measure every source of {derived[cell]}.")
        differences = stack(draws[column]) - stack(originals.loc[draws["source_id"]])
        frames.append(draws[["source_id"]].assign(
            method=cell.method, variant=cell.variant, seed=cell.seed, distance=np.linalg.norm(differences, axis=1)
        ))  # fmt: skip
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def select_faces(
    figure: Grid, source: FaceArchive, draw_distances: Distances | None, attempts: Sequence[FaceArchive] = ()
) -> list[str]:
    """The ids of the faces to show: test faces, one for each person, that are in all archives of ``attempts``.

    ``first``, or no distances: in archive order. ``closest_to_mean``: the faces whose distances are closest to the mean
    over all faces, in units of the standard deviation, summed over the variants; only faces that every variant gave.
    Raises ArchiveError when no face is left.
    """
    every = source.select("test")
    for archive in attempts:
        every = every[every["id"].isin(archive.index["source_id"])]
    rows = every.drop_duplicates("identity")
    if figure.choose == "closest_to_mean" and draw_distances is not None and len(draw_distances):
        table = draw_distances.pivot_table(index="source_id", columns=["method", "variant"], values="distance")
        off = ((table - table.mean()) / table.std().replace(0, np.nan)).abs().sum(axis=1)[table.notna().all(axis=1)]
        nearest = [name for name in off.sort_values(kind="stable").index if name in set(every["id"])]
        rows = every.set_index("id", drop=False).loc[nearest].drop_duplicates("identity")
    if rows.empty:
        raise ArchiveError(f"{source.path} holds no test face for {figure.key} that every method was measured on.")
    return rows["id"].head(figure.faces).tolist()


def load_draw(
    face: str, archives: Sequence[FaceArchive], key: tuple[str, str], draw_distances: Distances | None
) -> np.ndarray | str:
    """One anonymized image of ``face``, float32 (3, H, W), or the reason why there is none.

    Of several seeds: the draw whose distance is closest to the mean of the draws of this face, or the first if there
    are no distances.
    """
    rows = {archive.metadata["seed"]: archive.index[archive.index["source_id"] == face] for archive in archives}
    good = {seed: row for seed, row in rows.items() if len(row) and row["status"].iloc[0] == OK}
    if not good:
        refused = next((row for row in rows.values() if len(row)), None)
        return "this face was not anonymized" if refused is None else refused["reason"].iloc[0]
    seed = min(good)
    if draw_distances is not None and len(draw_distances):
        of_face = draw_distances[draw_distances["source_id"] == face]
        of_face = of_face[(of_face["method"] == key[0]) & (of_face["variant"] == key[1]) & of_face["seed"].isin(good)]
        by_seed = of_face.set_index("seed")["distance"].sort_index()
        if by_seed.notna().any():
            seed = (by_seed - by_seed.mean()).abs().idxmin()
    archive = next(archive for archive in archives if archive.metadata["seed"] == seed)
    return archive.load(rows=good[seed]).images[0]


def load_attempt(face: str, archives: Sequence[FaceArchive], picture: Picture) -> np.ndarray | str:
    """A further image of ``face`` from the first seed, float32 (3, H, W), or the reason why there is none."""
    archive = archives[0]
    rows = archive.index
    rows = rows[(rows["source_id"] == face) & (rows["attempt"] == picture.attempt) & (rows["number"] == picture.number)]
    if rows.empty:
        return f"no attempt '{picture.attempt}' of this face"
    return archive.load(rows=rows).images[0] if rows["status"].iloc[0] == OK else rows["reason"].iloc[0]
