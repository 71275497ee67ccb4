"""From a folder that another program wrote to one file of pictures, and from that file to the archive of a cell.

Both ways every picture is held against the originals: one that shows an original is never taken.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from masquerade import anonymization
from masquerade.errors import ArchiveError, PictureError
from masquerade.faces import _photographs
from masquerade.faces.folder import files, resized
from masquerade.images import FaceArchive, to_uint8
from masquerade.imported.settings import ImportedSet

SPLIT = "test"
BATCH = 32
MEGAPIXELS = 40.0  # of one picture: a guard against bombs
LISTED = 5  # names in an error; the others are counted
NO_PICTURE = "the program that was imported gave no picture of this face"
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # the same pictures give the same bytes


class Originals:
    """The test faces of a dataset, and which of them a picture shows."""

    def __init__(self, archive: FaceArchive):
        self.archive = archive
        self.rows = archive.select(SPLIT)
        self.size = archive.facts["size"]
        profiles = [np.empty((0, self.size * 3), np.float32)]
        sha = hashlib.sha256()
        for faces in archive.batches(BATCH, rows=self.rows):
            pictures = to_uint8(faces.images)
            profiles.append(_profiles(pictures))
            for name, picture in zip(faces.ids, pictures, strict=True):
                sha.update(name.encode() + b"\0" + picture.tobytes())
        self._profiles = np.concatenate(profiles)
        self.digest = sha.hexdigest()
        """SHA-256 of the names and pixels of the faces, in their order."""

    def shown(self, picture: np.ndarray, near: float) -> str:
        """The id of an original from which uint8 (H, W, 3) differs by at most ``near`` grey levels in the mean; or ''.

        No difference of row means exceeds that of the pixels, so that few originals need to be looked at.
        """
        distances = np.abs(self._profiles - _profiles(picture[None])).mean(axis=1)
        for place in np.flatnonzero(distances <= near + 1e-3):  # what float32 may have rounded
            original = to_uint8(self.archive.load(rows=self.rows.iloc[[place]]).images[0])
            if np.abs(original.astype(np.int16) - picture).mean() <= near:
                return self.rows["id"].iloc[place]
        return ""


def _profiles(pictures: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W, 3) -> the mean of every row and colour, float32 (N, 3 H)."""
    return pictures.mean(axis=2, dtype=np.float32).reshape(len(pictures), -1)


def export(archive: FaceArchive, output: Path) -> int:
    """Write every test face to ``output`` as a PNG with its id as the name; returns how many."""
    output.mkdir(parents=True, exist_ok=True)
    rows = archive.select(SPLIT)
    for faces in archive.batches(BATCH, rows=rows):
        for name, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
            Image.fromarray(picture).save(output / f"{name}.png")
    return len(rows)


def collect(folder: Path, originals: Originals, output: Path, near: float, partial: bool, resize: bool) -> int:
    """Write the pictures below ``folder``, in any format that is read, to the file ``output``; returns how many.

    A picture bears the id of its original as its name. ``partial``: a face may be without one; else, or where a
    picture belongs to no face, cannot be read, has another size (unless ``resize``, then: is not square), or shows an
    original, nothing is written. Raises ArchiveError that lists every mistake.
    """
    found: dict[str, list[Path]] = {}
    for path in files(folder):
        found.setdefault(path.stem, []).append(path)
    wanted = originals.rows["id"].tolist()
    unknown = [path.name for name in found.keys() - set(wanted) for path in found[name]]
    missing = [name for name in wanted if name not in found]
    wrong = {
        "no picture (--partial counts such faces as refused by the program)": [] if partial else missing,
        "a name that belongs to no face; take them away": sorted(unknown),
        "several files": [name for name in wanted if len(found.get(name, ())) > 1],
    }
    pictures = {}
    for name in wanted:
        if len(found.get(name, ())) != 1:
            continue
        try:
            pictures[name] = _read(found[name][0], folder, originals, near, resize)
        except PictureError as error:
            wrong.setdefault(str(error), []).append(name)
    told = [f"- {_listed(names)}: {what}" for what, names in wrong.items() if names]
    if told or not pictures:
        told = told or ["- there is no picture"]
        raise ArchiveError(
            f"{folder} cannot be imported for the {len(wanted)} test faces of {originals.archive.path}:\n"
            + "\n".join(told)
        )
    _store(pictures, output)
    return len(pictures)


def _read(path: Path, folder: Path, originals: Originals, near: float, resize: bool) -> np.ndarray:
    picture = _photographs.read(path, folder, MEGAPIXELS)
    size = originals.size
    if picture.shape[:2] != (size, size):
        if not resize:
            raise PictureError(f"not {size} x {size} pixels (--resize brings square pictures to that size)")
        picture = resized(picture, size)
    return _unlike(picture, originals, near)


def _unlike(picture: np.ndarray, originals: Originals, near: float) -> np.ndarray:
    """The picture itself. Raises PictureError where it shows an original."""
    if originals.shown(picture, 0.0):
        raise PictureError("an original, unchanged; such a picture is never imported")
    if originals.shown(picture, near):
        raise PictureError(
            f"an original but for {near:g} grey levels in the mean; --near 0 if the program changes no more than that"
        )
    return picture


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _store(pictures: Mapping[str, np.ndarray], output: Path) -> None:
    """Write PNGs under a temporary name and rename it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as entries:
        for name, picture in pictures.items():
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
            entries.writestr(zipfile.ZipInfo(f"{name}.png", _FIXED_DATE), buffer.getvalue())
    temporary.replace(output)


def sha256(path: Path) -> str:
    """Of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def take_in(
    archive: FaceArchive, pictures: Path, output: Path, knobs: ImportedSet, source: str, about: Mapping[str, object]
) -> None:
    """Write the archive of an imported cell: the test faces of ``archive`` with the pictures of the file ``pictures``.

    A face without a picture is refused with that reason. ``about``: method, variant and seed of the cell. Raises
    ArchiveError where the file is not the one that params.yaml names, was made of other originals, or shows one.
    """
    found = sha256(pictures)
    if found != knobs.sha256:
        raise ArchiveError(
            f"{pictures} has the SHA-256 {found}, and params.yaml names {knobs.sha256}. Fetch the right one with "
            "`dvc pull`, or import its folder again with `masquerade import-method`."
        )
    originals = Originals(archive)
    if originals.digest != knobs.originals:
        raise ArchiveError(
            f"{pictures} was made of other faces than those of {archive.path}. Hand those out with `masquerade "
            "export-faces`, and import what the program makes of them."
        )
    rows = archive.select(SPLIT, status=None)
    known = anonymization.refusals(rows)
    statement = {"imported": f"sha256:{knobs.sha256}", "program": source}
    results = _results(pictures, rows[~rows["id"].isin(known.keys())], originals, knobs.near)
    about = {**about, "key_id": ""}
    anonymization.write(output, rows, known, results, about, {**archive.facts, **about, "statement": statement})


def _results(
    pictures: Path, rows: pd.DataFrame, originals: Originals, near: float
) -> Iterator[tuple[np.ndarray | None, str]]:
    """(picture, '') or (None, reason) for each of ``rows``, in order."""
    with zipfile.ZipFile(pictures) as entries:
        there = set(entries.namelist())
        for name in rows["id"]:
            if f"{name}.png" not in there:
                yield None, NO_PICTURE
                continue
            with Image.open(io.BytesIO(entries.read(f"{name}.png")), formats=["PNG"]) as opened:
                picture = np.asarray(opened.convert("RGB"))
            if picture.shape != (originals.size, originals.size, 3):
                raise ArchiveError(f"{pictures}: {name} is not {originals.size} x {originals.size} pixels.")
            try:
                yield _unlike(picture, originals, near), ""
            except PictureError as error:
                raise ArchiveError(f"{pictures}: {name} is {error}") from error
