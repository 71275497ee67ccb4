"""Folder: the photographs in a folder of yours. Each file gives aligned faces, or a refusal with its reason."""

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade.core import pools
from masquerade.core.errors import PictureError
from masquerade.core.images import REFUSED
from masquerade.core.seeding import derive
from masquerade.core.settings import Settings
from masquerade.faces import DETAIL, Dataset, Record
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.decoding import resized

if TYPE_CHECKING:
    from masquerade.faces.photographs.neighbours import Face

TURNS = (0, 1, 3, 2)
"""Quarter turns in which faces are searched: upright first, upside down last."""
NO_FACE = "no face was found"
AHEAD = 4
"""Photographs that a process beside this one may be ahead of it: their faces are in memory."""


@dataclass(frozen=True)
class PhotographRecord(Record):
    """A face of a photograph. ``others``: the other faces of the photograph, as ``detailed``, also those not kept."""

    others: Sequence[np.ndarray] = ()


class Folder(Dataset):
    """Photographs below a folder. Each file is aligned as FFHQ is, or refused with a reason; none is left out.

    A crop shows no other face that was found in its photograph (`neighbours.crop`).
    Hidden files and folders, whose names begin with a dot, are ignored. In a row, ``file_id`` is the `safe_id` of the
    file, ``file_faces`` the number of rows of this file, which are neighbours, ``gray`` whether the photograph is black
    and white (`decoding.is_gray`), and ``square`` the place of an aligned face in the photograph: x, y of the centre
    and of the vector to the middle of the right side. ``head`` is the disc around a face that is too small
    (`hiding.head`).
    """

    title = "Photographs"
    splits = ("validation", "test")
    labelled_by = ("dlib_face",)  # the 68 landmarks

    class Params(Settings):
        path: str
        """The folder, with any sub-folders; '' for no photographs."""
        identity: Literal["from_folder", "unknown"]
        """from_folder: each sub-folder holds the pictures of one person, as in LFW; unknown: no identity is assumed."""
        validation_share: Annotated[float, Field(ge=0, lt=1)]
        """Share of the identities on which verification thresholds are set; the others, and unknown ones, are test."""
        faces: Literal["refuse", "largest", "all"]
        """For a photograph of several people: refuse it, take its largest face, or take every face."""
        alignment: Literal["ffhq", "none"]
        """ffhq: detect and align the faces; none: the pictures are square face crops and are only resized."""
        megapixels: Annotated[float, Field(gt=0, le=decoding.PILLOW_LIMIT)]
        """Refuse a picture with more pixels in its header, in millions (against decompression bombs)."""
        detection_side: Annotated[int, Field(ge=64)]
        """Longer side, in pixels, to which a photograph is resized before faces are detected; at most doubled."""
        detection_score: float
        """Smallest score of dlib's HOG detector; clear faces have about 1, and patterns rarely more than 0.2."""
        turn: bool
        """If no upright face is detected, try again with the photograph turned by 90, 270 and 180 degrees."""
        smallest: Annotated[float, Field(ge=1)]
        """Refuse a face whose aligned square is less than this many pixels of the photograph wide."""

    params: Params
    left_out: Collection[str] = ()
    """The files, as in the column ``file``, that `records` leaves out."""

    def available(self) -> tuple[bool, str]:
        if not self.params.path:
            return False, "no photographs are given (params.yaml: set datasets.folder.path to a folder)"
        if not Path(self.params.path).is_dir():
            return False, f"datasets.folder.path is '{self.params.path}', which is not a folder"
        return True, ""

    def sources(self) -> list[Path]:
        return [path for path in files(Path(self.params.path)) if path.is_file() and not path.is_symlink()]

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {safe_id(path.relative_to(self._root)): path for path in files(Path(self.params.path))}

    @property
    def _root(self) -> Path:
        return folder_of(Path(self.params.path))

    def photograph(self, name: str) -> np.ndarray:
        """The pixels of the file whose `safe_id` is ``name``, uint8 (H, W, 3), upright by EXIF. Raises PictureError."""
        return decoding.read(self._paths[name], self._root, self.params.megapixels)

    def texts(self, name: str) -> dict[str, str]:
        """The texts in the metadata of a PNG, by keyword; {} for other formats. Raises PictureError."""
        return decoding.texts(self._paths[name], self._root, self.params.megapixels)

    def records(self, size: int, seed: int, workers: int) -> Iterator[PhotographRecord]:
        if workers > 1:
            yield from self.records_beside(workers, size, seed)
        else:
            for faces in map(self._work(size, seed), self._files()):
                yield from faces

    def records_beside(self, processes: int, size: int, seed: int) -> Iterator[PhotographRecord]:
        """`records`, which so many other processes make while this one does something else."""
        with pools.beside(processes) as pool:
            left, work = iter(self._files()), self._work(size, seed)
            waiting = deque(pool.submit(work, path) for path in islice(left, AHEAD * processes))
            while waiting:
                faces = waiting.popleft().result()
                waiting.extend(pool.submit(work, path) for path in islice(left, 1))
                yield from faces

    def _work(self, size: int, seed: int) -> Callable[[Path], list[PhotographRecord]]:
        return partial(_records_of, self._root, self.params, size, seed)

    def _files(self) -> list[Path]:
        every = files(Path(self.params.path))
        return [path for path in every if _text(path.relative_to(self._root)) not in self.left_out]


def folder_of(path: Path) -> Path:
    """The folder to which names of photographs are relative: ``path`` itself, or the one that holds this file."""
    return path if path.is_dir() else path.parent


def files(root: Path) -> list[Path]:
    """Every file below ``root`` that is not hidden, in the byte order of the names. Links are listed, not followed.

    A sub-folder that may not be read is listed, too, and `decoding.read` refuses it. A ``root`` that is itself a file
    is the only one. Raises OSError for ``root``.
    """
    if root.is_file():
        return [root]
    paths: list[Path] = []

    def unreadable(error: OSError) -> None:
        if Path(error.filename) == root:
            raise error
        paths.append(Path(error.filename))

    for folder, folders, names in os.walk(root, onerror=unreadable):
        links = [name for name in folders if os.path.islink(Path(folder, name))]  # noqa: PTH114 - that raises if locked
        folders[:] = [name for name in folders if not name.startswith(".") and name not in links]
        paths += [Path(folder, name) for name in (*names, *links) if not name.startswith(".")]
    return sorted(paths, key=lambda path: os.fsencode(path.relative_to(root)))


def safe_id(relative: Path) -> str:
    """A unique name that is safe in any file system, e.g. ``Ann_Lee_0001_3f2a9c1d`` for ``Ann Lee/0001.jpg``.

    The digits are a hash of the path, so the id of a file does not depend on the other files.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", os.fspath(relative.with_suffix(""))).strip("_")[-48:]
    return f"{words or 'photograph'}_{hashlib.sha256(os.fsencode(relative)).hexdigest()[:8]}"


def _records_of(root: Path, params: "Folder.Params", size: int, seed: int, path: Path) -> list[PhotographRecord]:
    read = partial(decoding.read, path, root, params.megapixels)
    return records_of(path.relative_to(root), read, params, size, seed)


def records_of(
    relative: Path, read: Callable[[], np.ndarray], params: "Folder.Params", size: int, seed: int
) -> list[PhotographRecord]:
    """All records of one photograph: its faces, or one refusal.

    ``relative``: its name in the folder. ``read`` gives its pixels, uint8 (H, W, 3), or raises PictureError.
    """
    parents = _text(relative.parent)
    identity = parents if params.identity == "from_folder" and parents != "." else ""
    name = safe_id(relative)
    row = {
        "id": name,
        "identity": identity,
        "file": _text(relative),
        "file_id": name,
        "file_faces": 1,
        "landmarks": None,
        "gray": False,
    }
    row["split"] = _split(identity, params.validation_share, seed)
    try:
        pixels = read()
        row["gray"] = decoding.is_gray(pixels)
        faces = _faces(pixels, params, size)
    except PictureError as error:
        return [PhotographRecord(None, {**row, "status": REFUSED, "reason": str(error)})]
    row["file_faces"] = len(faces)
    if len(faces) > 1:  # the name of the sub-folder belongs to an unknown one of several people
        row |= {"identity": "", "split": "test"}
    names = [row["id"]] if len(faces) == 1 else [f"{row['id']}_{number}" for number in range(len(faces))]
    return [
        PhotographRecord(face.picture, {**row, "id": name, **face.facts}, None, face.detailed, face.others)
        for name, face in zip(names, faces, strict=True)
    ]


def _text(path: Path) -> str:
    """The path as text. Bytes that are not valid UTF-8 become U+FFFD."""
    return os.fsencode(path.as_posix()).decode("utf-8", "replace")


def _split(identity: str, validation_share: float, seed: int) -> str:
    return "validation" if identity and derive(seed, "split", identity) / 2**63 < validation_share else "test"


@dataclass(frozen=True)
class _Face:
    """One face of a photograph: its crop, or None for a refusal, ``facts`` for its row, its crop at DETAIL; ``others``:
    the crops of the other faces at DETAIL.
    """

    picture: np.ndarray | None
    facts: dict
    detailed: np.ndarray | None = None
    others: Sequence[np.ndarray] = ()


def _faces(picture: np.ndarray, params: "Folder.Params", size: int) -> list[_Face]:
    """The faces to keep, from left to right. Raises PictureError if the whole photograph is refused."""
    if params.alignment == "none":
        return [_Face(resized(picture, size), {})]
    from masquerade.faces.photographs import alignment
    from masquerade.faces.photographs.neighbours import Face

    upright, quarters, boxes = _found(picture, params)
    if len(boxes) > 1 and params.faces == "refuse":
        raise PictureError(f"{len(boxes)} faces were found")
    points = [alignment.landmarks(upright, box) for box in boxes]
    known = [Face(alignment.square(found), found) for found in points]
    kept = range(len(boxes))
    if params.faces == "largest":
        kept = [int(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).argmax())]
    return _aligned(upright, quarters, boxes, known, kept, params.smallest, size)


def _found(picture: np.ndarray, params: "Folder.Params") -> tuple[np.ndarray, int, np.ndarray]:
    """The picture as its faces are upright, its quarter turns, and their boxes (N, 4). Raises PictureError for none."""
    from masquerade.faces.photographs import alignment

    turned = [(np.ascontiguousarray(np.rot90(picture, turn)), turn) for turn in (TURNS if params.turn else TURNS[:1])]
    for upright, quarters in turned:
        boxes = alignment.detect(upright, params.detection_side, params.detection_score)
        if len(boxes):
            return upright, quarters, boxes
    for upright, quarters in turned:
        boxes = alignment.detect_filling(upright, params.detection_score)
        if len(boxes):
            return upright, quarters, boxes
    raise PictureError(NO_FACE)


def _aligned(
    picture: np.ndarray, quarters: int, boxes: np.ndarray, known: Sequence["Face"], kept: Sequence[int],
    smallest: float, size: int,
) -> list[_Face]:  # fmt: skip
    """The ``kept`` ones of the ``known`` faces, found in ``boxes`` (N, 4). ``picture`` is the photograph turned by
    ``quarters``.
    """
    from masquerade.faces.photographs import alignment, hiding, neighbours

    shape = np.rot90(picture, -quarters).shape
    neighbours_of = {number: [*known[:number], *known[number + 1 :]] for number in range(len(known))}
    detailed = {
        number: neighbours.crop(picture, face, neighbours_of[number], DETAIL)
        for number, face in enumerate(known)
        if face.square.side > 1  # also false for NaN, which equal landmarks give
    }
    faces = []
    for number in kept:
        face = known[number]
        try:
            alignment.check_size(face.square, smallest)
        except PictureError as error:
            disc = hiding.head(boxes[number], quarters, shape)
            faces.append(_Face(None, {"status": REFUSED, "reason": str(error), "head": disc.tolist()}))
            continue
        place = face.square.turned_back(quarters, shape)
        facts = {
            "landmarks": alignment.into_crop(face.points, face.square, size).astype(np.float32).ravel().tolist(),
            "square": [*place.centre.tolist(), *place.right.tolist()],
        }
        others = [crop for other, crop in detailed.items() if other != number]
        crop = neighbours.crop(picture, face, neighbours_of[number], size)
        faces.append(_Face(crop, facts, detailed[number], others))
    return faces
