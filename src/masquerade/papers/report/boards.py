"""Prepares the images of the report: each dataset's faces, and the images of every variant of every method.

Every strip has the same faces in the same order. A missing image leaves a gap with its reason; the original never
takes its place.
"""

import base64
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.core import discovery
from masquerade.core.images import OK, FaceArchive, to_uint8
from masquerade.papers.report.chain import Files
from masquerade.params.matrix import Setting
from masquerade.params.slices import Slice

FACES, SIDE, QUALITY = 8, 96, 82
"""The number of faces, the most pixels of a side, and the quality of their WebP."""
WIDE, FIGURE_QUALITY = 1200, 74
"""The most pixels across a figure of a paper, and the quality of its WebP."""
ATTEMPTS = {"recovered": "recovered, from the image and its key", "wrong": "with a wrong key"}
"""Attempt -> the title of its images below the anonymized ones."""
Knobs = Mapping[str, Any]
"""Knob -> its value, for one variant."""
Methods = Mapping[str, Mapping[str, Knobs]]
"""Method -> variant -> its knobs, in the order of params.yaml."""


@dataclass(frozen=True)
class Strip:
    """The faces of a board in one image, and its gaps as (place, reason)."""

    title: str
    image: str
    """A data URL; '' if no face has an image."""
    gaps: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class VariantImages:
    """The images of one variant, of which the anonymized ones come first. ``reason`` says why there are none."""

    setting: Setting
    title: str
    strips: tuple[Strip, ...]
    reason: str = ""


@dataclass(frozen=True)
class MethodImages:
    """The images of one method, with its variants in their natural order."""

    method: str
    title: str
    variants: tuple[VariantImages, ...]


@dataclass(frozen=True)
class Board:
    """One dataset: its faces, and the methods with images of them. ``absent``: method -> why it has none."""

    dataset: str
    size: int
    faces: tuple[str, ...]
    original: Strip
    methods: tuple[MethodImages, ...]
    absent: Mapping[str, str]


def make_boards(
    files: Files, methods: Methods, skipped: Mapping[Setting, str], private: Collection[str] = ()
) -> list[Board]:
    """A board for each dataset with anonymized images, from the first seed, that is not ``private``.

    ``skipped``: (dataset, method, variant) -> why it was not run. Raises ArchiveError when an archive is damaged.
    """
    first = {cell.setting: cell for cell in sorted(files.cells, key=lambda cell: cell.seed, reverse=True)}
    derived, attempts = (
        dict(zip(first, files.of(first.values(), pattern), strict=True))
        for pattern in (files.paths.anonymized, files.paths.recoveries)
    )
    attempts = {setting: path for setting, path in attempts.items() if path in files.recoveries}
    every = []
    for path in files.faces:
        archives = {setting: archive for setting, archive in derived.items() if setting[0] == path.stem}
        if archives and path.stem not in private:
            every.append(_board(path, archives, attempts, methods, skipped))
    return every


def _board(
    faces: Path,
    derived: Mapping[Setting, Path],
    attempts: Mapping[Setting, Path],
    methods: Methods,
    skipped: Mapping[Setting, str],
) -> Board:
    dataset, source = faces.stem, FaceArchive(faces)
    further = {setting: FaceArchive(path) for setting, path in attempts.items() if setting in derived}
    ids = _faces(source, further.values())
    originals = source.load(rows=source.index.set_index("id", drop=False).loc[ids]).images
    methods_shown, absent = [], {}
    planned = [*derived, *(setting for setting in skipped if setting[0] == dataset)]
    for method in dict.fromkeys(setting[1] for setting in planned):
        if method == "original":  # the board already has a row of originals
            continue
        names = [setting[2] for setting in planned if setting[1] == method]
        if not any((dataset, method, name) in derived for name in names):
            absent[method] = skipped[dataset, method, names[0]]
            continue
        knobs = {name: values for name, values in methods.get(method, {}).items() if name in names}
        knobs |= {name: {} for name in names if name not in knobs}
        of_variants = [
            _variant((dataset, method, name), knobs, ids, derived, further, skipped) for name in sort_variants(knobs)
        ]
        exists = method in discovery.list_names("methods")
        title = discovery.load("methods", method).title if exists else method
        methods_shown.append(MethodImages(method, title, tuple(of_variants)))
    original = Strip("original", _sheet(list(originals)))
    return Board(dataset, originals.shape[-1], tuple(ids), original, tuple(methods_shown), absent)


def _faces(source: FaceArchive, attempts: Iterable[FaceArchive]) -> list[str]:
    """The ids of the first test faces, one for each person, that are in all ``attempts``; if none is, of all faces."""
    every = source.select("test")
    common = every
    for archive in attempts:
        common = common[common["id"].isin(archive.index["source_id"])]
    rows = common if len(common) else every
    return rows.drop_duplicates("identity")["id"].head(FACES).tolist()


def _variant(
    setting: Setting,
    knobs: Mapping[str, Knobs],
    ids: Sequence[str],
    derived: Mapping[Setting, Path],
    attempts: Mapping[Setting, FaceArchive],
    skipped: Mapping[Setting, str],
) -> VariantImages:
    title = label_variant(setting[2], knobs)
    if setting not in derived:
        return VariantImages(setting, title, (), skipped[setting])
    archive = FaceArchive(derived[setting])
    strips = [_strip(archive, archive.index, ids, "anonymized")]
    if setting in attempts:
        index = attempts[setting].index[attempts[setting].index["number"] == 0]
        for attempt, words in ATTEMPTS.items():
            if len(rows := index[index["attempt"] == attempt]):
                strips.append(_strip(attempts[setting], rows, ids, words))
    return VariantImages(setting, title, tuple(strips))


def _strip(archive: FaceArchive, rows: pd.DataFrame, ids: Sequence[str], title: str) -> Strip:
    """The images of ``rows`` that were made of the faces ``ids``."""
    by_source = rows.drop_duplicates("source_id").set_index("source_id", drop=False)
    good = [face for face in ids if face in by_source.index and by_source.loc[face, "status"] == OK]
    loaded = archive.load(rows=by_source.loc[good]).images if good else []
    pictures = dict(zip(good, loaded, strict=True))
    gaps = tuple(
        (place, by_source.loc[face, "reason"] if face in by_source.index else "this face was not among them")
        for place, face in enumerate(ids)
        if face not in pictures
    )
    return Strip(title, _sheet([pictures.get(face) for face in ids]), gaps)


def _sheet(faces: Sequence[np.ndarray | None]) -> str:
    """Faces, float32 (3, H, W) in [-1, 1], side by side as a WebP. The place of a missing face is transparent."""
    sizes = {face.shape[-1] for face in faces if face is not None}
    if not sizes:
        return ""
    side = min(SIDE, max(sizes))
    sheet = Image.new("RGBA", (side * len(faces), side))
    for place, face in enumerate(faces):
        if face is not None:
            tile = Image.fromarray(to_uint8(face))
            sheet.paste(
                tile if tile.width == side else tile.resize((side, side), Image.Resampling.LANCZOS), (place * side, 0)
            )
    return encode_webp(sheet if any(face is None for face in faces) else sheet.convert("RGB"))


def encode_webp(picture: Image.Image, quality: int = QUALITY) -> str:
    """An image as a data URL. The same image gives the same text."""
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=quality, method=2)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def encode_figure(path: Path) -> str:
    """A figure of a paper as a data URL."""
    with Image.open(path) as image:
        picture = image.convert("RGB")
    if picture.width > WIDE:
        picture = picture.resize((WIDE, round(picture.height * WIDE / picture.width)), Image.Resampling.LANCZOS)
    return encode_webp(picture, FIGURE_QUALITY)


def read_methods(params: Slice) -> Methods:
    """The variants of every method, from the blocks ``methods.<name>.variants`` of a job's parameters."""
    return {name: block["variants"] for name, block in params["methods"].items()}


def sort_variants(variants: Mapping[str, Knobs]) -> list[str]:
    """Variants ordered by their knobs: knobs of words first, in the declared order, then knobs of numbers, by size.

    A word among numbers, such as ``level: random``, comes after the numbers.
    """
    names = dict.fromkeys(knob for knobs in variants.values() for knob in knobs)
    values = {name: [knobs.get(name) for knobs in variants.values()] for name in names}
    words_first = sorted(values, key=lambda name: any(map(_is_number, values[name])))

    def place(variant: str) -> list[tuple[int, float]]:
        knobs: dict[str, Any] = dict.fromkeys(names) | dict(variants[variant])
        return [
            (0, knobs[name]) if _is_number(knobs[name]) else (1, values[name].index(knobs[name]))
            for name in words_first
        ]

    return sorted(variants, key=place)


def label_variant(name: str, variants: Mapping[str, Knobs]) -> str:
    """The knobs that differ among the variants, with their values; or the name of the variant."""
    texts = [
        f"{knob} {value:g}" if _is_number(value) else f"{knob} {value}"
        for knob, value in variants.get(name, {}).items()
        if any(other.get(knob) != value for other in variants.values()) and isinstance(value, int | float | str)
    ]
    return ", ".join(texts) or name


def sort_settings(settings: Sequence[Setting], methods: Methods) -> list[Setting]:
    """Settings by dataset, then by the order of the methods in params.yaml, then by the order of their variants."""
    places = {(method, variant): (number, at)
              for number, (method, variants) in enumerate(methods.items())
              for at, variant in enumerate(sort_variants(variants))}  # fmt: skip
    last = (len(methods), 0)
    return sorted(settings, key=lambda setting: (setting[0], *places.get(setting[1:], last), setting))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
