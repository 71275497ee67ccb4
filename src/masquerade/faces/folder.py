"""Folder: the photographs in a folder of yours. Each file gives aligned faces, or a refusal with its reason."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, starmap
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade.core import process
from masquerade.core.errors import PictureError
from masquerade.core.files import expand_home
from masquerade.core.images import REFUSED
from masquerade.core.seeding import derive_seed
from masquerade.core.settings import Settings
from masquerade.faces import DETAIL, Dataset, Record
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.decoding import resize_square
from masquerade.faces.photographs.names import files, folder_of, names, safe_id, text

if TYPE_CHECKING:
    from masquerade.faces.photographs.hiding import Face

TURNS = (0, 1, 3, 2)
"""Quarter turns in which faces are searched: upright first, upside down last."""
NO_FACE = "no face was found"
AHEAD = 4
"""Photographs that a process beside this one may be ahead of it: their faces are in memory."""


@dataclass(frozen=True)
class PhotographRecord(Record):
    """A face of a photograph. ``others``: the other faces of the photograph, as ``detailed``, also those not kept.

    ``sha256``: of the file, or of one that it replaced while it was read; empty if it could not be read.
    """

    others: Sequence[np.ndarray] = ()
    sha256: bytes = b""


class Folder(Dataset):
    """Photographs below a folder. Each file is aligned as FFHQ is, or refused with a reason; none is left out.

    A crop shows no other face that was found in its photograph (`hiding.crop_alone`).
    Hidden files and folders, whose names begin with a dot, are ignored. In a row, ``file_id`` is the `safe_id` of the
    file, ``file_faces`` the number of rows of this file, which are neighbors, ``gray`` whether the photograph is black
    and white (`decoding.is_gray`), and ``square`` the place of an aligned face in the photograph: x, y of the center
    and of the vector to the middle of the right side. ``head`` is the disc around a face that is too small
    (`hiding.enclose_head`).
    """

    title = "Photographs"
    splits = ("validation", "test")
    labeled_by = ("dlib_face",)  # the 68 landmarks

    class Params(Settings):
        path: str
        """The folder of photographs, with any subfolders. An empty text means that there are none."""
        identity: Literal["from_folder", "unknown"]
        """from_folder says that each subfolder holds the images of one person, as in LFW; unknown assumes nothing about
        who is shown."""
        validation_share: Annotated[float, Field(ge=0, lt=1)]
        """Share of the people on whom verification thresholds are set. The others, and all people if they are unknown,
        form the test split."""
        faces: Literal["refuse", "largest", "all"]
        """What happens to a photograph that shows several people: refuse it, take its largest face, or take all of its
        faces."""
        alignment: Literal["ffhq", "none"]
        """ffhq detects the faces and aligns them as FFHQ does; none takes images that are square face crops already,
        and only resizes them."""
        megapixels: Annotated[float, Field(gt=0, le=decoding.PILLOW_LIMIT)]
        """Largest number of pixels, in millions, that the header of an image may state. Larger images are refused, as a
        protection against decompression bombs."""
        detection_side: Annotated[int, Field(ge=64)]
        """Length in pixels to which the longer side of a photograph is resized before faces are detected. Small
        photographs are enlarged to at most twice their size."""
        detection_score: float
        """Smallest score of dlib's HOG detector that counts as a face. Unprotected faces score about 1, and patterns
        rarely more than 0.2."""
        turn: bool
        """Whether detection is repeated on the photograph turned by 90, 270 and 180 degrees if no upright face is
        found."""
        smallest: Annotated[float, Field(ge=1)]
        """Smallest side of a face's aligned square, in pixels of the photograph. Smaller faces are refused."""

    params: Params
    left_out: Collection[str] = ()
    """The files, as in the column ``file``, that `records` leaves out."""

    def available(self) -> tuple[bool, str]:
        if not self.params.path:
            return False, "no photographs are given (params.yaml: set datasets.folder.path to a folder)"
        if not self.location.is_dir():
            return False, f"datasets.folder.path is '{self.params.path}', which is not a folder"
        return True, ""

    @property
    def location(self) -> Path:
        """The folder, or the one photograph; ``~`` in it is the home folder."""
        return expand_home(self.params.path)

    def sources(self) -> list[Path]:
        return [path for path in files(self.location) if path.is_file() and not path.is_symlink()]

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {safe_id(PurePosixPath(name)): path for name, path in names(self.location).items()}

    @property
    def _root(self) -> Path:
        return folder_of(self.location)

    def photograph(self, name: str) -> np.ndarray:
        """The pixels of the file whose `safe_id` is ``name``, uint8 (H, W, 3), upright by EXIF. Raises PictureError."""
        return decoding.read(self._paths[name], self._root, self.params.megapixels)

    def texts(self, name: str) -> dict[str, str]:
        """The texts in the metadata of a PNG, by keyword; {} for other formats. Raises PictureError."""
        return decoding.texts(self._paths[name], self._root, self.params.megapixels)

    def sha256(self, file: str) -> bytes | None:
        """The SHA-256 of a file by its name, as in the column ``file``; empty if it cannot be read, None without it."""
        path = self._paths.get(safe_id(PurePosixPath(file)))
        return decoding.sha256(path, self._root) if path else None

    def records(self, size: int, seed: int, workers: int) -> Iterator[PhotographRecord]:
        if workers > 1:
            yield from self.records_beside(workers, size, seed)
        else:
            for faces in starmap(self._work(size, seed), self._files()):
                yield from faces

    def records_beside(self, processes: int, size: int, seed: int) -> Iterator[PhotographRecord]:
        """`records`, which so many other processes make while this one does something else."""
        with process.open_pool(processes) as pool:
            remaining, work = iter(self._files()), self._work(size, seed)
            waiting = deque(pool.submit(work, *file) for file in islice(remaining, AHEAD * processes))
            while waiting:
                faces = waiting.popleft().result()
                waiting.extend(pool.submit(work, *file) for file in islice(remaining, 1))
                yield from faces

    def _work(self, size: int, seed: int) -> Callable[[str, Path], list[PhotographRecord]]:
        return partial(_read_records, self._root, self.params, size, seed)

    def _files(self) -> list[tuple[str, Path]]:
        every = names(self.location).items()
        return [(name, path) for name, path in every if text(name) not in self.left_out]


def _read_records(
    root: Path, params: "Folder.Params", size: int, seed: int, name: str, path: Path
) -> list[PhotographRecord]:
    # The hash comes before the pixels: what is read later may be another photograph.
    sha256 = decoding.sha256(path, root)
    return make_records(name, partial(decoding.read, path, root, params.megapixels), params, size, seed, sha256)


def make_records(
    name: str, read: Callable[[], np.ndarray], params: "Folder.Params", size: int, seed: int, sha256: bytes = b""
) -> list[PhotographRecord]:
    """All records of one photograph with this ``name`` (`names`): its faces, or one refusal.

    ``read`` gives its pixels, uint8 (H, W, 3), or raises PictureError. ``sha256``: of its file.
    """
    parents = text(name).rpartition("/")[0]
    identity = parents if params.identity == "from_folder" else ""
    file_id = safe_id(PurePosixPath(name))
    row = {
        "id": file_id,
        "identity": identity,
        "file": text(name),
        "file_id": file_id,
        "file_faces": 1,
        "landmarks": None,
        "gray": False,
    }
    row["split"] = _choose_split(identity, params.validation_share, seed)
    try:
        pixels = read()
        row["gray"] = decoding.is_gray(pixels)
        faces = _find_faces(pixels, params, size)
    except PictureError as error:
        faces = [_refuse(error)]
    row["file_faces"] = len(faces)
    if len(faces) > 1:  # the name of the sub-folder belongs to an unknown one of several people
        row |= {"identity": "", "split": "test"}
    ids = [file_id] if len(faces) == 1 else [f"{file_id}_{number}" for number in range(len(faces))]
    return [
        replace(face, row={**row, "id": face_id, **face.row}, sha256=sha256)
        for face_id, face in zip(ids, faces, strict=True)
    ]


def _refuse(error: PictureError, **columns: object) -> PhotographRecord:
    return PhotographRecord(None, {"status": REFUSED, "reason": str(error), **columns})


def _choose_split(identity: str, validation_share: float, seed: int) -> str:
    return "validation" if identity and derive_seed(seed, "split", identity) / 2**63 < validation_share else "test"


def _find_faces(picture: np.ndarray, params: "Folder.Params", size: int) -> list[PhotographRecord]:
    """The faces to keep, from left to right; a row has the columns of its face alone.

    Raises PictureError if the whole photograph is refused.
    """
    if params.alignment == "none":
        return [PhotographRecord(resize_square(picture, size), {})]
    from masquerade.faces.photographs import alignment
    from masquerade.faces.photographs.hiding import Face

    upright, quarters, boxes = _find_boxes(picture, params)
    if len(boxes) > 1 and params.faces == "refuse":
        raise PictureError(f"{len(boxes)} faces were found")
    landmarks = [alignment.landmarks(upright, box) for box in boxes]
    faces = [Face(alignment.square(points), points) for points in landmarks]
    selected = range(len(boxes))
    if params.faces == "largest":
        selected = [int(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).argmax())]
    return _align(upright, quarters, boxes, faces, selected, params.smallest, size)


def _find_boxes(picture: np.ndarray, params: "Folder.Params") -> tuple[np.ndarray, int, np.ndarray]:
    """The image as its faces are upright, its quarter turns, and their boxes (N, 4). Raises PictureError for none."""
    from masquerade.faces.photographs import alignment

    turned = [(np.ascontiguousarray(np.rot90(picture, turn)), turn) for turn in (TURNS if params.turn else TURNS[:1])]
    whole = partial(alignment.detect, side=params.detection_side)
    for detect in (whole, alignment.detect_filling):
        for upright, quarters in turned:
            boxes = detect(upright, score=params.detection_score)
            if len(boxes):
                return upright, quarters, boxes
    raise PictureError(NO_FACE)


def _align(
    picture: np.ndarray, quarters: int, boxes: np.ndarray, faces: Sequence["Face"], selected: Sequence[int],
    smallest: float, size: int,
) -> list[PhotographRecord]:  # fmt: skip
    """The ``selected`` ones of the ``faces``, found in ``boxes`` (N, 4). ``picture`` is the photograph turned by
    ``quarters``.
    """
    from masquerade.faces.photographs import alignment, hiding

    shape = np.rot90(picture, -quarters).shape
    neighbors_of = {number: [*faces[:number], *faces[number + 1 :]] for number in range(len(faces))}
    detailed = {
        number: hiding.crop_alone(picture, face, neighbors_of[number], DETAIL)
        for number, face in enumerate(faces)
        if face.square.side > 1  # also false for NaN, which equal landmarks give
    }
    crops = []
    for number in selected:
        face = faces[number]
        try:
            alignment.check_size(face.square, smallest)
        except PictureError as error:
            disc = hiding.enclose_head(boxes[number], quarters, shape)
            crops.append(_refuse(error, head=disc.tolist()))
            continue
        place = face.square.turn_back(quarters, shape)
        facts = {
            "landmarks": alignment.into_crop(face.points, face.square, size).astype(np.float32).ravel().tolist(),
            "square": [*place.center.tolist(), *place.right.tolist()],
        }
        others = [crop for other, crop in detailed.items() if other != number]
        crop = hiding.crop_alone(picture, face, neighbors_of[number], size)
        crops.append(PhotographRecord(crop, facts, None, detailed[number], others))
    return crops
