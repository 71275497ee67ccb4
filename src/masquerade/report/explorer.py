"""Pictures side by side: each dataset's faces, and what every variant of every method makes of them.

A strip holds the same faces in the same order. Where there is no picture the strip has a gap with its reason: the
original never stands in the place of a picture that is missing.
"""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from masquerade import discovery
from masquerade.images import OK, FaceArchive, to_uint8
from masquerade.report import variants
from masquerade.report.chain import Cell, Files
from masquerade.report.variants import Knobs, Methods

FACES, SIDE, QUALITY = 8, 96, 82
"""How many faces, the most pixels of a side, and how well WebP keeps them."""
WIDE, FIGURE_QUALITY = 1200, 74
"""Of the figures of a paper: the most pixels, and how well WebP keeps them."""
LANES = {
    "": "anonymized",
    "recovered": "recovered with the right key, from the picture alone",
    "wrong": "with a wrong key",
    "saved": "recovered from the saved representation, not from the picture",
    "saved_wrong": "from the saved representation with a wrong key",
    "pasted": "recovered, on the background of the original",
}
"""Kinds of pictures by their attempt, in the order in which they are shown; `lane` names the others."""


@dataclass(frozen=True)
class Strip:
    """The faces in a row: a picture, and the gaps in it as (place, reason)."""

    title: str
    picture: str
    """A data URL; '' where no face has a picture."""
    gaps: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Lane:
    """Pictures of one kind: one strip, or one a key."""

    title: str
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Stop:
    """One variant of a method. ``reason`` says why there are no pictures; '' where there are."""

    cell: Cell
    title: str
    lanes: tuple[Lane, ...]
    reason: str = ""


@dataclass(frozen=True)
class Shown:
    """One method with its variants in their natural order."""

    method: str
    title: str
    stops: tuple[Stop, ...]


@dataclass(frozen=True)
class Board:
    """One dataset: its faces, and the methods that have pictures of them. ``absent``: method -> why it has none."""

    dataset: str
    size: int
    faces: tuple[str, ...]
    original: Strip
    methods: tuple[Shown, ...]
    absent: Mapping[str, str]


def lane(attempt: str, keyed: bool) -> str:
    """What a kind of picture is called, of a method that takes a key or none."""
    if attempt == "recovered" and not keyed:
        return "recovered, from the picture alone"
    kind, _, which = attempt.partition(".")
    if kind == "near":
        return f"with a key of which one {which} is wrong"
    return f"view: {which.replace('_', ' ')}" if kind == "view" else LANES.get(attempt, attempt)


def boards(files: Files, methods: Methods, skipped: Mapping[Cell, str]) -> list[Board]:
    """A board for each dataset of which something was anonymized. Pictures are those of the first seed.

    ``skipped``: (dataset, method, variant) -> why it was not run.
    Raises ArchiveError where an archive is damaged.
    """
    derived, attempts = (_first(paths) for paths in (files.derived, files.attempts))
    return [
        _board(path, {cell: p for cell, p in derived.items() if cell[0] == path.stem}, attempts, methods, skipped)
        for path in files.faces
        if any(cell[0] == path.stem for cell in derived)
    ]


def _first(paths: Iterable[Path]) -> dict[Cell, Path]:
    """(dataset, method, variant) -> its archive of the first seed."""
    return {path.parts[-4:-1]: path for path in sorted(paths, key=lambda path: int(path.stem), reverse=True)}


def _board(
    faces: Path,
    derived: Mapping[Cell, Path],
    attempts: Mapping[Cell, Path],
    methods: Methods,
    skipped: Mapping[Cell, str],
) -> Board:
    dataset, source = faces.stem, FaceArchive(faces)
    tried = {cell: FaceArchive(path) for cell, path in attempts.items() if cell in derived}
    ids = _faces(source, tried.values())
    pictures = source.load(rows=source.index.set_index("id", drop=False).loc[ids]).images
    shown, absent = [], {}
    wanted = [cell for cell in skipped if cell[0] == dataset]
    for method in dict.fromkeys(cell[1] for cell in [*derived, *wanted]):
        if method == "original":  # the row of originals is there once
            continue
        names = [cell[2] for cell in [*derived, *wanted] if cell[1] == method]
        if not any((dataset, method, name) in derived for name in names):
            absent[method] = skipped[dataset, method, names[0]]
            continue
        knobs = {name: values for name, values in methods.get(method, {}).items() if name in names}
        knobs |= {name: {} for name in names if name not in knobs}
        stops = [
            _stop((dataset, method, name), knobs, ids, derived, tried, skipped) for name in variants.natural(knobs)
        ]
        known = method in discovery.names("methods")
        title = discovery.load("methods", method).title if known else method
        shown.append(Shown(method, title, tuple(stops)))
    original = Strip("original", _picture(list(pictures)))
    return Board(dataset, pictures.shape[-1], tuple(ids), original, tuple(shown), absent)


def _faces(source: FaceArchive, attempts: Iterable[FaceArchive]) -> list[str]:
    """The first test faces, one a person, of those in all ``attempts``; of all, where none is in all."""
    every = source.select("test")
    both = every
    for archive in attempts:
        both = both[both["id"].isin(archive.index["source_id"])]
    rows = both if len(both) else every
    return rows.drop_duplicates("identity")["id"].head(FACES).tolist()


def _stop(
    cell: Cell,
    knobs: Mapping[str, Knobs],
    ids: Sequence[str],
    derived: Mapping[Cell, Path],
    tried: Mapping[Cell, FaceArchive],
    skipped: Mapping[Cell, str],
) -> Stop:
    title = variants.label(cell[2], knobs)
    if cell not in derived:
        return Stop(cell, title, (), skipped[cell])
    archive = FaceArchive(derived[cell])
    method = discovery.load("methods", cell[1]) if cell[1] in discovery.names("methods") else None
    keyed = method is not None and method.capabilities.keys is not None
    lanes = {"": [_strip(archive, archive.index, ids, "the key of the experiment" if keyed else title)]}
    if cell in tried:
        index = tried[cell].index
        for attempt, number in index[["attempt", "number"]].drop_duplicates().itertuples(index=False):
            rows = index[(index["attempt"] == attempt) & (index["number"] == number)]
            home, words = ("", "further key") if attempt == "key" else (attempt, "key")
            lanes.setdefault(home, []).append(_strip(tried[cell], rows, ids, f"{words} {number + 1}"))
    known = list(LANES)
    order = sorted(lanes, key=lambda name: (known.index(name) if name in known else len(known), name))
    return Stop(cell, title, tuple(Lane(lane(name, keyed), tuple(lanes[name])) for name in order))


def _strip(archive: FaceArchive, rows: pd.DataFrame, ids: Sequence[str], title: str) -> Strip:
    """The pictures of ``rows`` that were made of the faces ``ids``."""
    by_source = rows.drop_duplicates("source_id").set_index("source_id", drop=False)
    there = [face for face in ids if face in by_source.index and by_source.loc[face, "status"] == OK]
    loaded = archive.load(rows=by_source.loc[there]).images if there else []
    pictures = dict(zip(there, loaded, strict=True))
    gaps = tuple(
        (place, by_source.loc[face, "reason"] if face in by_source.index else "this face was not among them")
        for place, face in enumerate(ids)
        if face not in pictures
    )
    return Strip(title, _picture([pictures.get(face) for face in ids]), gaps)


def _picture(faces: Sequence[np.ndarray | None]) -> str:
    """Faces, float32 (3, H, W) in [-1, 1], side by side as a WebP; a missing one is transparent."""
    sizes = {face.shape[-1] for face in faces if face is not None}
    if not sizes:
        return ""
    side = min(SIDE, max(sizes))
    sheet = Image.new("RGBA", (side * len(faces), side))
    for place, face in enumerate(faces):
        if face is not None:
            tile = Image.fromarray(to_uint8(face))
            sheet.paste(tile if tile.width == side else tile.resize((side, side), Image.LANCZOS), (place * side, 0))
    return webp(sheet if any(face is None for face in faces) else sheet.convert("RGB"))


def webp(picture: Image.Image, quality: int = QUALITY) -> str:
    """A picture as a data URL; the same picture gives the same text."""
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=quality, method=2)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def figure(path: Path) -> str:
    """A figure of a paper as a data URL."""
    with Image.open(path) as drawn:
        picture = drawn.convert("RGB")
    if picture.width > WIDE:
        picture = picture.resize((WIDE, round(picture.height * WIDE / picture.width)), Image.LANCZOS)
    return webp(picture, FIGURE_QUALITY)
