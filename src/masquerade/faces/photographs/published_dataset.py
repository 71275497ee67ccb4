"""The base class of the published datasets: it checks lists and files, then reads the pictures in several processes.

A file tree that differs from the published one raises DatasetError. A damaged picture is a refusal in the index.
"""

import hashlib
import io
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from masquerade.core import discovery, process
from masquerade.core.errors import DatasetError, PictureError
from masquerade.core.images import REFUSED
from masquerade.faces import MANIFESTS, Dataset, Record
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.decoding import resize_square
from masquerade.faces.photographs.trees import FolderTree, Tree, write_manifest

MEGAPIXELS = 100.0
AHEAD = 8  # files that are read ahead, for each process
ALIGNED_SIDE = 512  # pixels: an aligned picture is reduced to this side before its landmarks are detected
DETECTION_SIDE = 1024  # pixels of the longer side in which faces are detected; a smaller photograph is at most doubled
DETECTION_SCORE = 0.3  # the least of dlib's HOG detector; clear faces have about 1, and patterns rarely more than 0.2
SMALLEST = 64.0  # pixels of the photograph: the least side of the aligned square of a face


@dataclass(frozen=True)
class ListedPicture:
    """One picture of a set before it is read: its file, and what the lists state of it.

    ``row``: its row of the index. ``near``: a point (x, y) of the face in pixels, or None for the face in the middle.
    ``parts``: (class, file) of the parts of its parsing mask.
    """

    file: str
    row: dict
    near: tuple[float, float] | None = None
    parts: tuple[tuple[int, str], ...] = ()


class PublishedDataset(Dataset):
    """A dataset in the layout of its publishers. A subclass defines its files, its lists and how a picture is read."""

    labeled_by = ("dlib_face",)  # the 68 landmarks

    @abstractmethod
    def tree(self) -> Tree:
        """The files of the pictures. Raises DatasetError if something is missing; it must be fast."""

    @abstractmethod
    def lists(self) -> list[Path]:
        """The list files outside the archive of the tree. Raises DatasetError if one is missing."""

    @abstractmethod
    def picture_folders(self) -> list[str]:
        """The folders of the tree whose files are in the manifest."""

    @abstractmethod
    def list_pictures(self, tree: Tree, seed: int) -> list[ListedPicture]:
        """Every picture, in the order of the archive. Raises DatasetError if lists and files do not fit."""

    @abstractmethod
    def picture_reader(self, size: int) -> Callable[[tuple[float, float] | None, bytes], tuple[np.ndarray, dict]]:
        """The function that reads one picture: (near, content) -> (uint8 (size, size, 3), facts for the row).

        It must be picklable. It raises PictureError for a refusal.
        """

    @property
    def name(self) -> str:
        return discovery.find_name(type(self))

    def available(self) -> tuple[bool, str]:
        try:
            self.lists()
            self.tree()
        except DatasetError as error:
            if self.manifest.is_file():
                return True, ""
            return False, f"{str(error).rstrip('.')} (docs/datasets.md; datasets.{self.name} in params.yaml)"
        return True, ""

    def sources(self) -> list[Path]:
        """The manifest: every file of the set with its size in bytes, and every list with its SHA-256.

        The manifest is one input for Snakemake, which would need much longer to hash 30,000 pictures. An edit that
        keeps name and size of a picture is not detected. If the set is missing, the manifest that came with a build
        is used, so that a colleague can use the faces of that build without the photographs, which may not be shared.
        """
        try:
            with self.tree() as tree:
                files = self._files(tree)
        except DatasetError:
            if self.manifest.is_file():
                return [self.manifest]
            raise
        return [write_manifest(files, self.manifest)]

    @property
    def manifest(self) -> Path:
        """The path of the manifest that `sources` writes, relative to the root of the repository."""
        return MANIFESTS / f"{self.name}.tsv"

    def _files(self, tree: Tree) -> dict[str, int | str]:
        lists = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.lists()}
        if isinstance(tree, FolderTree):
            pairs = ((folder, tree.sizes(folder)) for folder in self.picture_folders())
            return lists | {f"{folder}/{name}": size for folder, sizes in pairs for name, size in sizes.items()}
        return lists | {tree.path.name: tree.path.stat().st_size}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every picture in the order of the lists. Raises DatasetError if the tree is not as published."""
        with self.tree() as tree:
            pictures = self.list_pictures(tree, seed)
            work = partial(_record, self.picture_reader(size), size)
            bar = tqdm(total=len(pictures), unit="face", desc=self.title, mininterval=5, disable=None)
            with bar:
                for record in _in_order(work, pictures, tree, workers):
                    bar.update()
                    yield record

    def check_count(self, count: int) -> None:
        """Raise DatasetError when ``count`` differs from the number of published pictures in params.yaml."""
        published = self.params.pictures
        if count != published:
            raise DatasetError(
                f"{self.params.path}: the lists name {count} pictures, and the published set has {published}. Fetch "
                f"the whole set, or set the number of your part in params.yaml (datasets.{self.name}.pictures)."
            )


def _in_order(work: Callable, pictures: list[ListedPicture], tree: Tree, workers: int) -> Iterator[Record]:
    """Yield the record of each picture, in order.

    This process reads the files and ``workers`` processes turn them into records. Only a window of files is in memory.
    """
    if workers <= 1:
        for listed in pictures:
            yield work(listed, _contents(tree, listed))
        return
    with process.open_pool(workers) as pool:
        for start in range(0, len(pictures), AHEAD * workers):
            window = pictures[start : start + AHEAD * workers]
            yield from pool.map(work, window, [_contents(tree, listed) for listed in window])


def _contents(tree: Tree, listed: ListedPicture) -> list[bytes] | str:
    """The picture and the parts of its mask, or the reason why they cannot be read."""
    try:
        return [tree.read(name) for name in (listed.file, *(name for _, name in listed.parts))]
    except PictureError as error:
        return str(error)


def _record(read: Callable, size: int, listed: ListedPicture, contents: list[bytes] | str) -> Record:
    row = {**listed.row, "file": listed.file, "landmarks": None}
    try:
        if isinstance(contents, str):
            raise PictureError(contents)
        picture, facts = read(listed.near, contents[0])
        mask = _mask(listed, contents[1:], size) if listed.parts else None
    except PictureError as error:
        return Record(None, {**row, "status": REFUSED, "reason": str(error)})
    return Record(picture, {**row, **facts}, mask)


def _mask(listed: ListedPicture, contents: list[bytes], size: int) -> np.ndarray:
    """uint8 (size, size): the parts on top of one another in the order of their classes, by nearest neighbor."""
    import cv2

    whole: np.ndarray | None = None
    for (label, name), content in zip(listed.parts, contents, strict=True):
        try:
            part = decode(content)[..., 0] > 0
        except PictureError as error:
            raise PictureError(f"its mask {Path(name).name} is no picture: {error}") from error
        whole = np.zeros(part.shape, np.uint8) if whole is None else whole
        if part.shape != whole.shape or part.shape[0] != part.shape[1]:
            raise PictureError(f"its mask {Path(name).name} is of another size or not square")
        whole[part] = label
    assert whole is not None  # every face has parts
    return cv2.resize(whole, (size, size), interpolation=cv2.INTER_NEAREST_EXACT)


def decode(content: bytes) -> np.ndarray:
    """The pixels of a file, uint8 (H, W, 3). Raises PictureError if it cannot be decoded."""
    if not content:
        raise PictureError("the file is empty")
    return decoding.decode(io.BytesIO(content), MEGAPIXELS)


def read_aligned(sides: tuple[int, ...], size: int, near: Any, content: bytes) -> tuple[np.ndarray, dict]:
    """Read a picture that its publishers aligned as FFHQ does: it is resized by area, and gets dlib's 68 landmarks.

    ``sides``: the published sides in pixels; any other side is refused. Column ``detected``: whether dlib's HOG found
    the face. If it did not, the landmarks start from the box of an aligned face.
    """
    from masquerade.faces.photographs import alignment

    picture = decode(content)
    if picture.shape[:2] not in [(side, side) for side in sides]:
        published = " or ".join(f"{side} x {side}" for side in sides)
        raise PictureError(f"{picture.shape[1]} x {picture.shape[0]} pixels, published with {published}")
    side = min(picture.shape[0], ALIGNED_SIDE)
    points, detected = alignment.detect_landmarks(resize_square(picture, side))
    inside = (points + 0.5) * (size / side) - 0.5
    return resize_square(picture, size), {"landmarks": inside.astype(np.float32).ravel().tolist(), "detected": detected}


def read_photograph(size: int, near: tuple[float, float] | None, content: bytes) -> tuple[np.ndarray, dict]:
    """Read a photograph: dlib detects the face, which is cropped as FFHQ does. Column ``faces``: number of detections.

    Of several faces it takes the one around ``near``, or without ``near`` the one that FaceNet's alignment takes.
    """
    from masquerade.faces.photographs import alignment

    picture = decode(content)
    boxes = alignment.detect(picture, DETECTION_SIDE, DETECTION_SCORE)
    box = alignment.central_box(boxes, picture.shape) if near is None else alignment.box_around(boxes, near)
    crop, points = alignment.cut_out(picture, box, SMALLEST, size)
    return crop, {"landmarks": points.ravel().tolist(), "faces": len(boxes)}
