"""Which faces a picture grid shows, and which of several draws of a face: by rule, never by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from masquerade import measuring
from masquerade.errors import ArchiveError
from masquerade.images import OK, FaceArchive
from masquerade.metrics import stack
from masquerade.papers.reference import Grid, Picture

Archives = Mapping[tuple[str, str], Sequence[FaceArchive]]
"""(method, variant) -> its anonymized archives, by seed."""
Distances = pd.DataFrame
"""A row a draw: method, variant, seed, source_id, distance."""


def by_cell(derived: Sequence[FaceArchive]) -> Archives:
    """Anonymized archives by (method, variant), each by seed."""
    found: dict[tuple[str, str], list[FaceArchive]] = {}
    for archive in sorted(derived, key=lambda archive: archive.facts["seed"]):
        found.setdefault((archive.facts["method"], archive.facts["variant"]), []).append(archive)
    return found


def distances(source: Path, derived: Mapping[tuple[str, str, int], Path], judge: str) -> Distances:
    """Euclidean distance between the embeddings of every original and each of its draws.

    ``source``: measurements of the originals; ``derived``: those of each (method, variant, seed). A draw that was
    refused, or in which the judge finds no face, has NaN. Raises ArchiveError where the judge or an original was not
    measured.
    """
    column = f"{judge}.embedding"
    tables = {None: measuring.read(source)} | {key: measuring.read(path) for key, path in derived.items()}
    for key, path in {None: source, **derived}.items():
        if column not in tables[key]:
            raise ArchiveError(f"{path} holds no {column}: is '{judge}' among measure.judges of params.yaml?")
    known = tables.pop(None).set_index("id")[column]
    frames = []
    for (method, variant, seed), draws in tables.items():
        if not draws["source_id"].isin(known.index).all():
            raise ArchiveError(f"{source} does not measure every source of {derived[method, variant, seed]}.")
        apart = stack(draws[column]) - stack(known.loc[draws["source_id"]])
        frames.append(draws[["source_id"]].assign(
            method=method, variant=variant, seed=seed, distance=np.linalg.norm(apart, axis=1)
        ))  # fmt: skip
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def faces(
    figure: Grid, source: FaceArchive, apart: Distances | None, attempts: Sequence[FaceArchive] = ()
) -> list[str]:
    """The ids of the faces to show, of the test split, one a person; of those that were in all ``attempts``.

    ``first`` (and where no distance is known): in archive order. ``closest_to_mean``: those whose distances are closest
    to the mean over all faces, in units of the standard deviation, added over the variants; of faces that every variant
    gave. Raises ArchiveError where no face is left.
    """
    every = source.select("test")
    for archive in attempts:
        every = every[every["id"].isin(archive.index["source_id"])]
    rows = every.drop_duplicates("identity")
    if figure.choose == "closest_to_mean" and apart is not None and len(apart):
        each = apart.pivot_table(index="source_id", columns=["method", "variant"], values="distance")
        off = ((each - each.mean()) / each.std().replace(0, np.nan)).abs().sum(axis=1)[each.notna().all(axis=1)]
        nearest = [name for name in off.sort_values(kind="stable").index if name in set(every["id"])]
        rows = every.set_index("id", drop=False).loc[nearest].drop_duplicates("identity")
    if rows.empty:
        raise ArchiveError(f"{source.path} holds no test face for {figure.key} that every method was measured on.")
    return rows["id"].head(figure.faces).tolist()


def draw(face: str, archives: Sequence[FaceArchive], key: tuple[str, str], apart: Distances | None) -> np.ndarray | str:
    """One anonymized picture of ``face``, float32 (3, H, W), or the reason why there is none.

    Of several seeds: the draw whose distance is closest to the mean of the draws of this face (the first, where
    no distances are known).
    """
    rows = {archive.facts["seed"]: archive.index[archive.index["source_id"] == face] for archive in archives}
    good = {seed: row for seed, row in rows.items() if len(row) and row["status"].iloc[0] == OK}
    if not good:
        there = next((row for row in rows.values() if len(row)), None)
        return "this face was not anonymized" if there is None else there["reason"].iloc[0]
    seed = min(good)
    if apart is not None and len(apart):
        mine = apart[(apart["source_id"] == face) & (apart["method"] == key[0]) & (apart["variant"] == key[1])]
        mine = mine[mine["seed"].isin(good)].set_index("seed")["distance"].sort_index()
        if mine.notna().any():
            seed = (mine - mine.mean()).abs().idxmin()
    archive = next(archive for archive in archives if archive.facts["seed"] == seed)
    return archive.load(rows=good[seed]).images[0]


def attempt(face: str, archives: Sequence[FaceArchive], picture: Picture) -> np.ndarray | str:
    """One further picture of ``face``, float32 (3, H, W), or the reason why there is none; of the first seed."""
    archive = archives[0]
    rows = archive.index
    rows = rows[(rows["source_id"] == face) & (rows["attempt"] == picture.attempt) & (rows["number"] == picture.number)]
    if rows.empty:
        return f"no attempt '{picture.attempt}' of this face"
    return archive.load(rows=rows).images[0] if rows["status"].iloc[0] == OK else rows["reason"].iloc[0]
