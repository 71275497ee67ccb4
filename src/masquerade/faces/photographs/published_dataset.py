"""The base class of the published datasets: it checks lists and files, then reads the images in several processes.

The files of a set are in an unpacked folder or in the archive as it was published; both have the same file names, such
as ``CelebA-HQ-img/0.jpg``. Hidden files are ignored. A file tree that differs from the published one raises
DatasetError. A damaged image is a refusal in the index.
"""

import gzip
import hashlib
import io
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import numpy as np
from tqdm import tqdm

from masquerade.core import discovery, process
from masquerade.core.errors import DatasetError, PictureError
from masquerade.core.files import write_if_changed
from masquerade.core.images import REFUSED
from masquerade.faces import MANIFESTS, Dataset, Record
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.decoding import resize_square

MEGAPIXELS = 100.0
AHEAD = 8  # files that are read ahead, for each process
ALIGNED_SIDE = 512  # pixels: an aligned image is reduced to this side before its landmarks are detected
DETECTION_SIDE = 1024  # pixels of the longer side in which faces are detected; a smaller photograph is at most doubled
DETECTION_SCORE = (
    0.3  # the least of dlib's HOG detector; unprotected faces have about 1, and patterns rarely more than 0.2
)
SMALLEST = 64.0  # pixels of the photograph: the least side of the aligned square of a face
LARGEST = 2**26  # bytes of one file: a larger one is not a photograph and may be an archive bomb
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, struct.error, zlib.error,
           LookupError, zipfile.BadZipFile, tarfile.TarError)  # fmt: skip


class FolderTree:
    """The files below the folder ``path``. Links are followed, so a dataset may be on another disk."""

    def __init__(self, path: Path):
        self.path = path

    def sizes(self, inside: str) -> dict[str, int]:
        """Name below the folder ``inside`` -> bytes, of every regular file that is not hidden. Raises DatasetError."""
        root = self.path / inside
        start = len(str(root)) + 1
        return {entry.path[start:]: entry.stat().st_size for entry in _scan(root) if entry.is_file()}

    def _read(self, name: str) -> bytes:
        path = self.path / name
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:  # a read from a pipe would never return
            raise OSError
        return path.read_bytes()

    def read(self, name: str) -> bytes:
        """The content of a file. Raises PictureError if it is damaged; its text is the reason in the archive."""
        try:
            return self._read(name)
        except _BROKEN as error:
            raise PictureError(f"cannot be read from {self.path.name} ({type(error).__name__})") from error


def _scan(folder: Path | str) -> Iterable[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    yield from _scan(entry.path)
                else:
                    yield entry
    except OSError as error:
        raise DatasetError(f"{folder} cannot be listed ({error.strerror}). Check its permissions.") from error


class ArchiveTree(FolderTree):
    """The files of a zip or ``.tgz`` below its folder ``top``; '' for the whole archive. The first use opens it."""

    def __init__(self, path: Path, top: str = ""):
        super().__init__(path)
        self._top = f"{top}/" if top else ""

    @cached_property
    def _members(self) -> dict[str, tuple[int, Callable[[], bytes]]]:
        """Name -> bytes, and the function that reads the file."""
        try:
            if self.path.suffix == ".zip":
                archive = zipfile.ZipFile(self.path)
                entries = [entry for entry in archive.infolist() if not entry.is_dir()]
                return {entry.filename: (entry.file_size, partial(archive.read, entry)) for entry in entries}
            unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the tree
            with gzip.open(self.path) as packed:  # once, as a whole: a .tgz cannot be read from its middle
                copyfileobj(packed, unpacked, 2**20)
            unpacked.seek(0)
            tar = tarfile.open(fileobj=unpacked, mode="r:")  # noqa: SIM115
            members = [member for member in tar if member.isreg()]
            return {m.name.removeprefix("./"): (m.size, partial(_read_member, tar, m)) for m in members}
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is not a complete archive ({error}). Fetch it again.") from error

    def sizes(self, inside: str) -> dict[str, int]:
        prefix = f"{self._top}{inside}/"
        below = {
            name.removeprefix(prefix): size for name, (size, _) in self._members.items() if name.startswith(prefix)
        }
        return {name: size for name, size in below.items() if not any(part.startswith(".") for part in name.split("/"))}

    def _read(self, name: str) -> bytes:
        size, read = self._members[f"{self._top}{name}"]
        if size > LARGEST:
            raise OSError
        return read()


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(member)
    assert content is not None  # it is a regular file
    return content.read()


def first_existing(root: Path, names: Sequence[str]) -> Path:
    """The first of the files or folders below ``root`` that exists. Raises DatasetError naming them all."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise DatasetError(f"{root} holds no {' and no '.join(names)}")


def check_files(files: Mapping[str, int], expected: Collection[str], folder: object) -> None:
    """Raise DatasetError when ``files`` lacks an expected image, or has a file that is not expected."""
    expected = set(expected)
    missing, extra = sorted(expected - files.keys()), sorted(files.keys() - expected)
    if missing:
        raise DatasetError(
            f"{folder}: {len(missing)} of {len(expected)} images of the lists are missing (the first: {missing[0]}). "
            "Unpack or fetch the set again."
        )
    if extra:
        raise DatasetError(
            f"{folder}: {len(extra)} files are in no list of the set (the first: {extra[0]}). Move them away."
        )


@dataclass(frozen=True)
class ListedPicture:
    """One image of a set before it is read: its file, and what the lists state of it.

    ``row``: its row of the index, such as ``{"id": "lfw-Ann_Lee-0001", "identity": "Ann_Lee", "split": "test",
    "fold": 4, "pairs": ["lfw-Ann_Lee-0002"]}``. ``near``: a point (x, y) of the face in pixels, or None for the face in
    the middle.
    ``parts``: (class, file) of the parts of its parsing mask.
    """

    file: str
    row: dict
    near: tuple[float, float] | None = None
    parts: tuple[tuple[int, str], ...] = ()


class PublishedDataset(Dataset):
    """A dataset in the layout of its publishers. A subclass defines its files, its lists and its images."""

    labeled_by = ("dlib_face",)  # the 68 landmarks

    @abstractmethod
    def picture_folders(self) -> list[str]:
        """The folders of the tree whose files are in the manifest; the images are in the first."""

    @abstractmethod
    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        """Every image, in the order of the archive. Raises DatasetError if lists and files do not fit."""

    def tree(self) -> FolderTree:
        """The files of the images. Raises DatasetError if something is missing; it must be fast."""
        return FolderTree(first_existing(Path(self.params.path), self.picture_folders()[:1]).parent)

    @property
    def aligned_side(self) -> int | None:
        """Side in pixels of images that the publishers aligned as FFHQ does; None for photographs, aligned here."""
        return None

    def lists(self) -> list[Path]:
        """The list files outside the archive of the tree. Raises DatasetError if one is missing."""
        return []

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

        The manifest is one input for Snakemake, which would need much longer to hash 30,000 images. An edit that
        keeps name and size of an image is not detected. If the set is missing, the manifest that came with a build
        is used, so that a colleague can use the faces of that build without the photographs, which may not be shared.
        """
        try:
            files = self._files()
        except DatasetError:
            if self.manifest.is_file():
                return [self.manifest]
            raise
        # Snakemake reruns jobs when the file changes, so it is only written if its text does.
        return [write_if_changed(self.manifest, "".join(f"{name}\t{files[name]}\n" for name in sorted(files)))]

    @property
    def manifest(self) -> Path:
        """The path of the manifest that `sources` writes, relative to the root of the repository."""
        return MANIFESTS / f"{self.name}.tsv"

    def _files(self) -> dict[str, int | str]:
        tree = self.tree()
        lists = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.lists()}
        if isinstance(tree, ArchiveTree):
            return lists | {tree.path.name: tree.path.stat().st_size}
        folders = {folder: tree.sizes(folder) for folder in self.picture_folders()}
        return lists | {f"{folder}/{name}": size for folder, sizes in folders.items() for name, size in sizes.items()}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every image in the order of the lists. Raises DatasetError if the tree is not as published."""
        tree = self.tree()
        pictures = self.list_pictures(tree, seed)
        read = partial(read_aligned, self.aligned_side) if self.aligned_side else read_photograph
        work = partial(_record, read, size)
        with tqdm(total=len(pictures), unit="face", desc=self.title, mininterval=5, disable=None) as bar:
            for record in _in_order(work, pictures, tree, workers):
                bar.update()
                yield record

    def check_count(self, count: int) -> None:
        """Raise DatasetError when ``count`` differs from the number of published images in params.yaml."""
        published = self.params.pictures
        if count != published:
            raise DatasetError(
                f"{self.params.path}: the lists name {count} images, and the published set has {published}. Fetch "
                f"the whole set, or set the number of your part in params.yaml (datasets.{self.name}.pictures)."
            )


def _in_order(work: Callable, pictures: list[ListedPicture], tree: FolderTree, workers: int) -> Iterator[Record]:
    """Yield the record of each image, in order.

    This process reads the files and ``workers`` processes turn them into records. Only a window of files is in memory.
    """
    if workers <= 1:
        for picture in pictures:
            yield work(picture, _contents(tree, picture))
        return
    with process.open_pool(workers) as pool:
        for start in range(0, len(pictures), AHEAD * workers):
            window = pictures[start : start + AHEAD * workers]
            yield from pool.map(work, window, [_contents(tree, picture) for picture in window])


def _contents(tree: FolderTree, picture: ListedPicture) -> list[bytes] | str:
    """The image and the parts of its mask, or the reason why they cannot be read."""
    try:
        return [tree.read(name) for name in (picture.file, *(name for _, name in picture.parts))]
    except PictureError as error:
        return str(error)


def _record(read: Callable, size: int, picture: ListedPicture, contents: list[bytes] | str) -> Record:
    row = {**picture.row, "file": picture.file, "landmarks": None}
    try:
        if isinstance(contents, str):
            raise PictureError(contents)
        pixels, facts = read(size, picture.near, contents[0])
        mask = _mask(picture, contents[1:], size) if picture.parts else None
    except PictureError as error:
        return Record(None, {**row, "status": REFUSED, "reason": str(error)})
    return Record(pixels, {**row, **facts}, mask)


def _mask(picture: ListedPicture, contents: list[bytes], size: int) -> np.ndarray:
    """uint8 (size, size): the parts on top of one another in the order of their classes, by nearest neighbor."""
    import cv2

    mask: np.ndarray | None = None
    for (label, name), content in zip(picture.parts, contents, strict=True):
        try:
            part = decode(content)[..., 0] > 0
        except PictureError as error:
            raise PictureError(f"its mask {Path(name).name} is no image: {error}") from error
        mask = np.zeros(part.shape, np.uint8) if mask is None else mask
        if part.shape != mask.shape or part.shape[0] != part.shape[1]:
            raise PictureError(f"its mask {Path(name).name} is of another size or not square")
        mask[part] = label
    assert mask is not None  # every face has parts
    return cv2.resize(mask, (size, size), interpolation=cv2.INTER_NEAREST_EXACT)


def decode(content: bytes) -> np.ndarray:
    """The pixels of a file, uint8 (H, W, 3). Raises PictureError if it cannot be decoded."""
    if not content:
        raise PictureError("the file is empty")
    return decoding.decode(io.BytesIO(content), MEGAPIXELS)


def read_aligned(published: int, size: int, near: Any, content: bytes) -> tuple[np.ndarray, dict]:
    """Read an image that its publishers aligned as FFHQ does: it is resized by area, and gets dlib's 68 landmarks.

    ``published``: the side in pixels; any other side is refused. Column ``detected``: whether dlib's HOG found
    the face. If it did not, the landmarks start from the box of an aligned face.
    """
    from masquerade.faces.photographs import alignment

    picture = decode(content)
    if picture.shape[:2] != (published, published):
        raise PictureError(f"{picture.shape[1]} x {picture.shape[0]} pixels, published with {published} x {published}")
    side = min(published, ALIGNED_SIDE)
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
