"""One photograph that a program gives, and its result. Neither is written to a file."""

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from masquerade.core import files
from masquerade.core.errors import (
    FaceLeft,
    KeyFormatError,
    MasqueradeError,
    NoFace,
    PictureError,
    SealError,
    SeveralFaces,
    StillRecognized,
    WrongKey,
)
from masquerade.core.images import OK
from masquerade.faces.folder import Folder, PhotographRecord, make_records
from masquerade.faces.photographs import decoding
from masquerade.pipeline import image_texts, inspection
from masquerade.pipeline.release import FOUND, Row
from masquerade.pipeline.whole_photographs import HIDDEN, NOT_ALL

Picture = str | os.PathLike[str] | Image.Image | np.ndarray
"""A path, a PIL image, or an array uint8 (H, W, 3) of RGB."""
CHOICES: Mapping[str, Literal["refuse", "largest", "all"]] = {"one": "refuse", "largest": "largest", "all": "all"}
"""What a program says of the faces of a photograph -> what `faces.folder` does."""
REFUSALS: Mapping[str, type[PictureError]] = {
    r"no face was found": NoFace,
    r"\d+ faces were found": SeveralFaces,
    inspection.RECOGNIZED: StillRecognized,
    inspection.LEFT: FaceLeft,
    r"wrong key": WrongKey,
    r"the record in its file .*": SealError,
}
"""Pattern of a reason in a report -> the error of a program. Any other reason is a PictureError."""
ENDINGS = {"PNG": (".png",), "JPEG": (".jpg", ".jpeg")}
NAME = "picture.bmp"
"""The name of a photograph that a program gave without a file. Random numbers follow from it, and from the seed."""


@dataclass(frozen=True)
class JudgedFile:
    """An image as the recognizer saw it. ``content``: its file."""

    content: bytes = field(repr=False)

    @cached_property
    def image(self) -> Image.Image:
        """The image, RGB. What a recovery needs is in its ``info``, which Pillow's own ``save`` leaves out."""
        picture = Image.open(io.BytesIO(self.content))
        picture.load()
        return picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, with what a recovery needs. Raises MasqueradeError if the ending names another format."""
        path, kind = files.expand_home(path), str(self.image.format)
        if path.suffix.lower() not in ENDINGS[kind]:
            raise MasqueradeError(f"{path}: the image is a {kind} file. Name it {' or '.join(ENDINGS[kind])}.")
        with files.write_atomically(path) as temporary:
            temporary.write_bytes(self.content)


@dataclass(frozen=True)
class AnonymizedFace(JudgedFile):
    """An upright square face. ``distance``: to the nearest face of the photograph, by dlib's recognizer.

    ``threshold``: a result up to this distance is refused. ``found``: whether a detector finds a face in the result.
    ``salt``: of its key, in hexadecimal digits; '' without one. ``maker``: what made it. ``large``: at 1024 pixels.
    """

    distance: float
    threshold: float
    found: bool
    salt: str
    maker: str
    large: Image.Image | None


@dataclass(frozen=True)
class AnonymizedPhotograph(JudgedFile):
    """The result of one photograph: its only face, or the whole photograph with all ``faces`` replaced in place.

    ``distance``: the smallest of its faces; infinite if all are hidden. ``statement``: facts of the method, such as
    epsilon. ``hidden``: the number of faces that coarse blocks hide, because the method cannot draw them.
    """

    distance: float
    faces: tuple[AnonymizedFace, ...]
    statement: Mapping[str, object]
    hidden: int = 0


class Photograph(Folder):
    """One photograph in memory, as a folder of one file. ``stated``: the texts of its metadata, by keyword."""

    def __init__(self, params: Folder.Params, pixels: np.ndarray, stated: Mapping[str, str]):
        super().__init__(params)
        self._pixels, self._stated = pixels, dict(stated)

    def photograph(self, name: str) -> np.ndarray:
        return self._pixels

    def texts(self, name: str) -> dict[str, str]:
        return self._stated

    def records(self, size: int, seed: int, workers: int) -> Iterator[PhotographRecord]:
        yield from make_records(NAME, lambda: self._pixels, self.params, size, seed)


def find_path(picture: Picture) -> Path | None:
    """The file of an image; None if it is in memory. Raises PictureError if there is no such file."""
    if not isinstance(picture, str | os.PathLike):
        return None
    path = files.expand_home(picture)
    if not _is_file(path):
        raise PictureError(f"{path} is {'a folder' if path.is_dir() else 'no file'}. Give the path of one image.")
    return path


def read_pixels(picture: Picture, megapixels: float) -> np.ndarray:
    """uint8 (H, W, 3), as `decoding.read` gives them. Raises PictureError for something else than an image."""
    path = find_path(picture)
    if path is None:
        return decoding.pixels(_to_image(picture), megapixels)
    return decoding.read(path, path.parent, megapixels)


def _is_file(path: Path) -> bool:
    """Raises PictureError for a name that no file can have."""
    try:
        return path.is_file()
    except OSError as error:
        raise PictureError(f"{error.strerror}. Give the path of one image.") from error


def _to_image(picture: object) -> Image.Image:
    if isinstance(picture, Image.Image):
        return picture
    if not isinstance(picture, np.ndarray):
        raise PictureError(f"not an image but of type {type(picture).__name__}: give a path, a PIL image or an array")
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise PictureError(f"an array must be uint8 (H, W, 3) of RGB, and this one is {picture.dtype} {picture.shape}")
    return Image.fromarray(picture)


def read_texts(picture: Picture, salt: str | None) -> dict[str, str] | None:
    """What an anonymized image says of itself, with ``salt`` in place of its own. None: its file says all.

    A check that belongs to another salt is left out.
    """
    if isinstance(picture, str | os.PathLike):
        if salt is None:
            return None
        path = files.expand_home(picture)
        texts = decoding.texts(path, path.parent, decoding.PILLOW_LIMIT) if _is_file(path) else {}
    else:
        texts = getattr(picture, "info", {})
    keywords = (
        image_texts.SALT_KEYWORD, image_texts.CHECK_KEYWORD, image_texts.MAKER_KEYWORD, image_texts.RECORD_KEYWORD
    )  # fmt: skip
    stated = {keyword: str(texts[keyword]) for keyword in keywords if keyword in texts}
    if salt is None:
        return stated
    if not isinstance(salt, str):
        raise KeyFormatError(f"A salt is text of hexadecimal digits, and this one is of type {type(salt).__name__}.")
    if salt != stated.get(image_texts.SALT_KEYWORD, ""):
        stated[image_texts.CHECK_KEYWORD] = image_texts.UNCHECKED
    stated.pop(image_texts.SALT_KEYWORD, None)
    return {
        image_texts.CHECK_KEYWORD: image_texts.UNCHECKED,
        **stated,
        **({image_texts.SALT_KEYWORD: salt} if salt else {}),
    }


def make_result(
    rows: Sequence[Row], written: Mapping[str, bytes], statement: Mapping[str, object]
) -> AnonymizedPhotograph:
    """The result of one photograph; ``written``: name -> content of a file. Raises the error of its first refusal."""
    first, refused = rows[0], [row for row in rows if row["status"] not in (OK, HIDDEN)]
    for row in refused:
        if row.get("head") is None:  # a small face refuses its photograph only if nothing else does
            _check(row, row["reason"], row.get("distance"))
    if first.get("photograph_reason", "") not in ("", NOT_ALL):
        judged = next((row for row in rows if row["status"] == OK), first)
        _check(judged, first["photograph_reason"], first["photograph_distance"])
    for row in refused:
        _check(row, row["reason"], row.get("distance"))
    faces = tuple(_make_face(row, written) for row in rows if row["status"] == OK)
    distances = [face.distance for face in faces]
    if "photograph" not in first:
        return AnonymizedPhotograph(faces[0].content, min(distances), faces, statement)
    content = written[first["photograph"]]
    nearest = min([*distances, float(first["photograph_distance"] or "inf")])
    return AnonymizedPhotograph(content, nearest, faces, statement, int(first["photograph_hidden"]))


def read_recovered(rows: Sequence[Row], written: Mapping[str, bytes]) -> Image.Image:
    """The recovered face of one image; ``written`` as in `make_result`. Raises the error of its refusal."""
    _check(rows[0], rows[0]["reason"], None)
    image = JudgedFile(written[rows[0]["output"]]).image
    image.info["recovered_from"] = rows[0]["recovered_from"]
    return image


def _make_face(row: Row, written: Mapping[str, bytes]) -> AnonymizedFace:
    large = JudgedFile(written[row["large"]]).image if row["large"] else None
    return AnonymizedFace(
        written[row["output"]], float(row["distance"]), float(row["threshold"]), row["face"] == FOUND,
        row[image_texts.SALT], row["maker"], large,
    )  # fmt: skip


def _check(row: Row, reason: str, distance: str | None) -> None:
    """Raises the error of a refusal; '' is none."""
    if not reason and row["status"] == OK:
        return
    kind = next((kind for pattern, kind in REFUSALS.items() if re.fullmatch(pattern, reason)), PictureError)
    if kind is not StillRecognized:
        raise kind(reason)
    error = StillRecognized(f"{reason} (distance {distance}; threshold {row['threshold']})")
    error.distance, error.threshold = float(distance or "nan"), float(row["threshold"])
    raise error
