"""Selects the faces of an image grid, and one of several draws of a face, by rule and never by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from masquerade.core import face_tables
from masquerade.core.errors import ArchiveError
from masquerade.core.face_tables import stack
from masquerade.core.images import OK, FaceArchive
from masquerade.papers.figure_declarations import Grid, Picture
from masquerade.params.matrix import Cell

Archives = Mapping[tuple[str, str], Sequence[FaceArchive]]
"""(method, variant) -> its archives, by seed."""
Distances: TypeAlias = pd.DataFrame
"""One row for each draw: method, variant, seed, source_id, distance."""


def by_variant(archives: Sequence[FaceArchive]) -> Archives:
    """Archives by (method, variant), each by seed."""
    grouped: dict[tuple[str, str], list[FaceArchive]] = {}
    for archive in sorted(archives, key=lambda archive: archive.metadata["seed"]):
        grouped.setdefault((archive.metadata["method"], archive.metadata["variant"]), []).append(archive)
    return grouped


def distances(source: Path, derived: Mapping[Cell, Path], judge: str) -> Distances:
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


def faces(
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


def draw(
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
        mine = draw_distances[draw_distances["source_id"] == face]
        mine = mine[(mine["method"] == key[0]) & (mine["variant"] == key[1]) & mine["seed"].isin(good)]
        by_seed = mine.set_index("seed")["distance"].sort_index()
        if by_seed.notna().any():
            seed = (by_seed - by_seed.mean()).abs().idxmin()
    archive = next(archive for archive in archives if archive.metadata["seed"] == seed)
    return archive.load(rows=good[seed]).images[0]


def attempt(face: str, archives: Sequence[FaceArchive], picture: Picture) -> np.ndarray | str:
    """A further image of ``face`` from the first seed, float32 (3, H, W), or the reason why there is none."""
    archive = archives[0]
    rows = archive.index
    rows = rows[(rows["source_id"] == face) & (rows["attempt"] == picture.attempt) & (rows["number"] == picture.number)]
    if rows.empty:
        return f"no attempt '{picture.attempt}' of this face"
    return archive.load(rows=rows).images[0] if rows["status"].iloc[0] == OK else rows["reason"].iloc[0]
