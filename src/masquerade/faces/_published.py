"""What the published datasets share: lists and pictures are checked, then every picture is looked at by some process.

A tree that is not as published stops the run with a DatasetError. One damaged picture is a refusal in the index.
"""

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from tqdm import tqdm

from masquerade.errors import DatasetError, PictureError
from masquerade.faces import Dataset, Record, _photographs
from masquerade.faces._trees import FolderTree, Tree, write_manifest
from masquerade.faces.folder import resized
from masquerade.images import REFUSED
from masquerade.settings import Settings

MEGAPIXELS = 100.0
MANIFESTS = Path(".masquerade/datasets")
AHEAD = 8  # pictures a process that are read before they are looked at
ALIGNED_SIDE = 512  # pixels: to which an aligned picture is reduced before its landmarks are found


class Detection(Settings):
    """How the face of a photograph is found (docs/photographs.md)."""

    side: Annotated[int, Field(ge=64)]
    """Longer side, in pixels, to which a photograph is brought before faces are looked for, at most doubled."""
    score: float
    """Least score of dlib's HOG detector; clear faces have about 1, and patterns rarely more than 0.2."""
    smallest: Annotated[float, Field(ge=1)]
    """Refuse a face whose aligned square is less than this many pixels of the photograph wide."""


@dataclass(frozen=True)
class Listed:
    """One picture of a set before it is looked at: its file, its row, and where the lists say that the face is.

    ``near``: (x, y) in pixels, or None where the face is in the middle. ``parts``: class -> file of its parsing mask.
    """

    file: str
    row: dict
    near: tuple[float, float] | None = None
    parts: tuple[tuple[int, str], ...] = ()


class Published(Dataset):
    """A dataset as others published it. Subclasses say where it lies, what its lists say, and how it is looked at."""

    @abstractmethod
    def tree(self) -> Tree:
        """Where the pictures lie. Raises DatasetError, quickly, where something is missing."""

    @abstractmethod
    def lists(self) -> list[Path]:
        """The list files that lie outside the tree's archive. Raises DatasetError where one is missing."""

    @abstractmethod
    def watched(self) -> list[str]:
        """The folders of the tree whose files count."""

    @abstractmethod
    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        """Every picture, in the order of the archive. Raises DatasetError where lists and files do not fit."""

    @abstractmethod
    def looking(self, size: int) -> Callable[[dict, tuple[float, float] | None, bytes], tuple[np.ndarray, dict]]:
        """What a process does with one picture: (row, near, content) -> (uint8 (size, size, 3), facts for the row).

        It must be picklable; it raises PictureError for a refusal.
        """

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[-1]

    def available(self) -> tuple[bool, str]:
        try:
            self.lists(), self.tree()
        except DatasetError as error:
            return False, f"{str(error).rstrip('.')} (docs/datasets.md; datasets.{self.name} in params.yaml)"
        return True, ""

    def sources(self) -> list[Path]:
        """The lists and the archive; for a folder, in its place, a list of its files and their sizes in bytes.

        Snakemake looks at each input of a job: 30,000 pictures are listed in less time than it needs to hash them. An
        edit that keeps name and size is not seen.
        """
        with self.tree() as tree:
            if not isinstance(tree, FolderTree):
                return [*self.lists(), *tree.files()]
            sizes = {f"{inside}/{name}": size for inside in self.watched() for name, size in tree.sizes(inside).items()}
        return [*self.lists(), write_manifest(sizes, MANIFESTS / f"{self.name}.tsv")]

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Every picture in the order of the lists. Raises DatasetError where the tree is not as published."""
        with self.tree() as tree:
            listed = self.listed(tree, seed)
            work = partial(_record, self.looking(size), size)
            bar = tqdm(total=len(listed), unit="face", desc=self.title, mininterval=5, disable=None)
            with bar:
                for record in _in_order(work, listed, tree, workers):
                    bar.update()
                    yield record

    def check_count(self, count: int) -> None:
        """Raises DatasetError where there are not as many pictures as params.yaml says that were published."""
        wanted = self.params.pictures
        if count != wanted:
            raise DatasetError(
                f"{self.params.path}: the lists name {count} pictures, and the published set has {wanted}. Fetch the "
                f"whole set; for a part of it, say how many in params.yaml (datasets.{self.name}.pictures)."
            )


def _in_order(work: Callable, listed: list[Listed], tree: Tree, workers: int) -> Iterator[Record]:
    """Files are read here and looked at there, a window of them at a time, so that memory stays small."""
    if workers <= 1:
        for item in listed:
            yield work(item, _contents(tree, item))
        return
    # Spawned, because a fork would inherit the threads of whoever calls.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for start in range(0, len(listed), AHEAD * workers):
            window = listed[start : start + AHEAD * workers]
            yield from pool.map(work, window, [_contents(tree, item) for item in window])


def _contents(tree: Tree, item: Listed) -> list[bytes] | str:
    """The picture and the parts of its mask, or why they cannot be read."""
    try:
        return [tree.read(name) for name in (item.file, *(name for _, name in item.parts))]
    except PictureError as error:
        return str(error)


def _record(look: Callable, size: int, item: Listed, contents: list[bytes] | str) -> Record:
    row = {**item.row, "file": item.file, "landmarks": None}
    try:
        if isinstance(contents, str):
            raise PictureError(contents)
        picture, facts = look(row, item.near, contents[0])
        mask = _mask(item, contents[1:], size) if item.parts else None
    except PictureError as error:
        return Record(None, {**row, "status": REFUSED, "reason": str(error)})
    return Record(picture, {**row, **facts}, mask)


def _mask(item: Listed, contents: list[bytes], size: int) -> np.ndarray:
    """uint8 (size, size): the parts laid over one another in the order of their classes, by nearest neighbour."""
    import cv2

    whole: np.ndarray | None = None
    for (label, name), content in zip(item.parts, contents, strict=True):
        try:
            part = decoded(content)[..., 0] > 0
        except PictureError as error:
            raise PictureError(f"its mask {Path(name).name} is no picture: {error}") from error
        whole = np.zeros(part.shape, np.uint8) if whole is None else whole
        if part.shape != whole.shape or part.shape[0] != part.shape[1]:
            raise PictureError(f"its mask {Path(name).name} is of another size or not square")
        whole[part] = label
    return cv2.resize(whole, (size, size), interpolation=cv2.INTER_NEAREST_EXACT)


def decoded(content: bytes) -> np.ndarray:
    """uint8 (H, W, 3). Raises PictureError."""
    if not content:
        raise PictureError("the file is empty")
    return _photographs.decoded(io.BytesIO(content), MEGAPIXELS)


def look_at_aligned(sides: tuple[int, ...], size: int, row: dict, near: Any, content: bytes) -> tuple[np.ndarray, dict]:
    """A picture that its publishers aligned as FFHQ is: only resized (by area), with dlib's 68 landmarks.

    ``sides``: the sides in pixels that were published; any other is refused. Column ``detected``: whether dlib's HOG
    found the face; where it did not, the landmarks start from where alignment puts a face.
    """
    from masquerade.faces import _alignment

    picture = decoded(content)
    if picture.shape[:2] not in [(side, side) for side in sides]:
        told = " or ".join(f"{side} x {side}" for side in sides)
        raise PictureError(f"{picture.shape[1]} x {picture.shape[0]} pixels, published with {told}")
    side = min(picture.shape[0], ALIGNED_SIDE)
    points, detected = _alignment.known_place(resized(picture, side))
    inside = (points + 0.5) * (size / side) - 0.5
    return resized(picture, size), {"landmarks": inside.astype(np.float32).ravel().tolist(), "detected": detected}


def look_at_photograph(
    detection: Detection, size: int, row: dict, near: tuple[float, float] | None, content: bytes
) -> tuple[np.ndarray, dict]:
    """A photograph: its face found by dlib and cut out as FFHQ is. Column ``faces``: how many were found.

    Of several faces it is the one around ``near``; without that, the one that FaceNet's alignment takes.
    """
    from masquerade.faces import _alignment

    picture = decoded(content)
    boxes = _alignment.detect(picture, detection.side, detection.score)
    box = _alignment.central(boxes, picture.shape) if near is None else _alignment.around(boxes, near)
    crop, points = _alignment.cut_out(picture, box, detection.smallest, size)
    return crop, {"landmarks": points.ravel().tolist(), "faces": len(boxes)}
