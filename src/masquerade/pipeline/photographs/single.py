"""One photograph that a program gives, and its result: a file between the program and the steps for a folder."""

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from masquerade.core import files
from masquerade.core.errors import (
    FaceLeft,
    KeyFormatError,
    MasqueradeError,
    NoFace,
    PictureError,
    SeveralFaces,
    StillRecognised,
    WrongKey,
)
from masquerade.core.images import OK
from masquerade.faces.photographs import decoding
from masquerade.pipeline import inspection, makers, salts
from masquerade.pipeline.release import FOUND, Row

Picture = str | os.PathLike[str] | Image.Image | np.ndarray
"""A path, a PIL image, or an array uint8 (H, W, 3) of RGB."""
CHOICES: Mapping[str, Literal["refuse", "largest", "all"]] = {"one": "refuse", "largest": "largest", "all": "all"}
"""What a program says of the faces of a photograph -> what `faces.folder` does."""
REFUSALS: Mapping[str, type[PictureError]] = {
    r"no face was found": NoFace,
    r"\d+ faces were found": SeveralFaces,
    inspection.RECOGNISED: StillRecognised,
    inspection.LEFT: FaceLeft,
    r"wrong key": WrongKey,
}
"""Pattern of a reason in a report -> the error of a program. Any other reason is a PictureError."""
ENDINGS = {"PNG": (".png",), "JPEG": (".jpg", ".jpeg")}


@dataclass(frozen=True)
class JudgedFile:
    """A picture as the recogniser saw it. ``content``: its file."""

    content: bytes = field(repr=False)

    @cached_property
    def image(self) -> Image.Image:
        """The picture, RGB. What a recovery needs is in its ``info``, which Pillow's own ``save`` leaves out."""
        picture = Image.open(io.BytesIO(self.content))
        picture.load()
        return picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, with what a recovery needs. Raises MasqueradeError if the ending names another format."""
        path, kind = files.at_home(path), str(self.image.format)
        if path.suffix.lower() not in ENDINGS[kind]:
            raise MasqueradeError(f"{path}: the picture is a {kind} file. Name it {' or '.join(ENDINGS[kind])}.")
        with files.written(path) as temporary:
            temporary.write_bytes(self.content)


@dataclass(frozen=True)
class AnonymizedFace(JudgedFile):
    """An upright square face. ``distance``: to the nearest face of the photograph, by dlib's recogniser.

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

    ``distance``: the smallest of its faces. ``statement``: facts of the method, such as epsilon.
    """

    distance: float
    faces: tuple[AnonymizedFace, ...]
    statement: Mapping[str, object]


def as_file(picture: Picture, folder: Path, megapixels: float, texts: Mapping[str, str] | None = None) -> Path:
    """A file with the picture: its own, or a new one below ``folder``. ``texts``: keyword -> text for a new PNG.

    Raises PictureError for something else than a picture.
    """
    if isinstance(picture, str | os.PathLike):
        path = files.at_home(picture)
        if not _is_file(path):
            raise PictureError(f"{path} is {'a folder' if path.is_dir() else 'no file'}. Give the path of one picture.")
        if texts is None:
            return path
        pixels = decoding.read(path, path.parent, megapixels)
    else:
        pixels = decoding.pixels(_image(picture), megapixels)
    file, metadata = folder / f"picture.{'bmp' if texts is None else 'png'}", PngInfo()
    for keyword, text in (texts or {}).items():
        metadata.add_text(keyword, text)
    Image.fromarray(pixels).save(file, pnginfo=metadata)
    return file


def _is_file(path: Path) -> bool:
    """Raises PictureError for a name that no file can have."""
    try:
        return path.is_file()
    except OSError as error:
        raise PictureError(f"{error.strerror}. Give the path of one picture.") from error


def _image(picture: object) -> Image.Image:
    if isinstance(picture, Image.Image):
        return picture
    if not isinstance(picture, np.ndarray):
        raise PictureError(f"not a picture but of type {type(picture).__name__}: give a path, a PIL image or an array")
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise PictureError(f"an array must be uint8 (H, W, 3) of RGB, and this one is {picture.dtype} {picture.shape}")
    return Image.fromarray(picture)


def texts(picture: Picture, salt: str | None) -> dict[str, str] | None:
    """What an anonymized picture says of itself, with ``salt`` in place of its own. None: its file says all.

    A check that belongs to another salt is left out.
    """
    if isinstance(picture, str | os.PathLike):
        if salt is None:
            return None
        path = files.at_home(picture)
        found = decoding.texts(path, path.parent, decoding.PILLOW_LIMIT) if _is_file(path) else {}
    else:
        found = getattr(picture, "info", {})
    keywords = (salts.KEYWORD, salts.CHECK_KEYWORD, makers.KEYWORD)
    stated = {keyword: str(found[keyword]) for keyword in keywords if keyword in found}
    if salt is None:
        return stated
    if not isinstance(salt, str):
        raise KeyFormatError(f"A salt is text of hexadecimal digits, and this one is of type {type(salt).__name__}.")
    if salt != stated.get(salts.KEYWORD, ""):
        stated[salts.CHECK_KEYWORD] = salts.UNCHECKED
    stated.pop(salts.KEYWORD, None)
    return {salts.CHECK_KEYWORD: salts.UNCHECKED, **stated, **({salts.KEYWORD: salt} if salt else {})}


def result(rows: Sequence[Row], folder: Path, statement: Mapping[str, object]) -> AnonymizedPhotograph:
    """The result of the one photograph of a report. Raises the error of its first refusal."""
    for row in rows:
        _check(row, row["reason"], row.get("distance"))
    faces = tuple(_face(row, folder) for row in rows)
    first, distances = rows[0], [face.distance for face in faces]
    if "photograph" not in first:
        return AnonymizedPhotograph(faces[0].content, min(distances), faces, statement)
    distance = first["photograph_distance"]
    _check(first, first["photograph_reason"], distance)
    content = (folder / first["photograph"]).read_bytes()
    return AnonymizedPhotograph(content, min([*distances, float(distance or "inf")]), faces, statement)


def recovered(rows: Sequence[Row], folder: Path) -> Image.Image:
    """The recovered face of the one picture of a report. Raises the error of its refusal."""
    _check(rows[0], rows[0]["reason"], None)
    return JudgedFile((folder / rows[0]["output"]).read_bytes()).image


def _face(row: Row, folder: Path) -> AnonymizedFace:
    large = JudgedFile((folder / row["large"]).read_bytes()).image if row["large"] else None
    return AnonymizedFace(
        (folder / row["output"]).read_bytes(), float(row["distance"]), float(row["threshold"]), row["face"] == FOUND,
        row[salts.SALT], row["maker"], large,
    )  # fmt: skip


def _check(row: Row, reason: str, distance: str | None) -> None:
    """Raises the error of a refusal; '' is none."""
    if not reason and row["status"] == OK:
        return
    kind = next((kind for pattern, kind in REFUSALS.items() if re.fullmatch(pattern, reason)), PictureError)
    if kind is not StillRecognised:
        raise kind(reason)
    error = StillRecognised(f"{reason} (distance {distance}; threshold {row['threshold']})")
    error.distance, error.threshold = float(distance or "nan"), float(row["threshold"])
    raise error
