"""Reads the files of a published dataset from an unpacked folder or from the archive as it was published.

Both have the same file names, such as ``CelebA-HQ-img/0.jpg``. Hidden files are ignored.
"""

import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import Any, Self

from masquerade.core.errors import DatasetError, PictureError
from masquerade.core.files import write_if_changed

LARGEST = 2**26  # bytes of one file: a larger one is not a photograph and may be an archive bomb
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, struct.error, zlib.error,
           zipfile.BadZipFile, tarfile.TarError)  # fmt: skip


class Tree(ABC):
    """Files by name. ``path`` is the folder or archive, for error texts. Use as a context manager."""

    def __init__(self, path: Path):
        self.path = path

    @abstractmethod
    def sizes(self, inside: str) -> dict[str, int]:
        """Name below the folder ``inside`` -> bytes, of every regular file that is not hidden. Raises DatasetError."""

    @abstractmethod
    def _read(self, name: str) -> bytes:
        """The content. Raises KeyError for an unknown name, or an error of _BROKEN for a damaged file."""

    def read(self, name: str) -> bytes:
        """The content of a file. Raises PictureError if it is damaged; its text is the reason in the archive."""
        try:
            return self._read(name)
        except KeyError as error:
            raise PictureError("the file has gone") from error
        except _BROKEN as error:
            raise PictureError(f"cannot be read from {self.path.name} ({type(error).__name__})") from error

    def text(self, name: str) -> str:
        """The text of a list. Raises DatasetError if it cannot be read."""
        try:
            return self.read(name).decode("utf-8")
        except (PictureError, UnicodeDecodeError) as error:
            raise DatasetError(f"{self.path}: {name} cannot be read ({error}). Fetch it again.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class FolderTree(Tree):
    """Files below a folder. Links are followed, so a dataset may be on another disk."""

    def sizes(self, inside: str) -> dict[str, int]:
        root = self.path / inside
        start = len(str(root)) + 1
        return {entry.path[start:]: entry.stat().st_size for entry in _scan(root) if entry.is_file()}

    def _read(self, name: str) -> bytes:
        path = self.path / name
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:  # a read from a pipe would never return
            raise OSError
        return path.read_bytes()


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


class ZipTree(Tree):
    """Files of a zip below its folder ``top``; '' for the whole zip."""

    def __init__(self, path: Path, top: str = ""):
        super().__init__(path)
        self._top = f"{top}/" if top else ""

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is not a complete zip file ({error}). Fetch it again.") from error

    def sizes(self, inside: str) -> dict[str, int]:
        files = [(entry.filename, entry.file_size) for entry in self._zip.infolist() if not entry.is_dir()]
        return _below(f"{self._top}{inside}", files, self.path)

    def _read(self, name: str) -> bytes:
        entry = self._zip.getinfo(f"{self._top}{name}")
        if entry.file_size > LARGEST:
            raise OSError
        return self._zip.read(entry)

    def __exit__(self, *error: object) -> None:
        if "_zip" in vars(self):
            self._zip.close()


class TarTree(Tree):
    """Files of a ``.tgz``. It is decompressed once, as a whole, into an unnamed temporary file."""

    @cached_property
    def _tar(self) -> tarfile.TarFile:
        import gzip

        try:
            plain = tempfile.TemporaryFile()  # noqa: SIM115 - __exit__ closes it
            with gzip.open(self.path) as packed:
                copyfileobj(packed, plain, 2**20)
            plain.seek(0)
            return tarfile.open(fileobj=plain, mode="r:")
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is not a complete .tgz file ({error}). Fetch it again.") from error

    @cached_property
    def _members(self) -> dict[str, tarfile.TarInfo]:
        try:
            members = [(PurePosixPath(member.name).as_posix(), member) for member in self._tar if member.isreg()]
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is not a complete .tgz file ({error}). Fetch it again.") from error
        return _unique(members, self.path)

    def sizes(self, inside: str) -> dict[str, int]:
        return _below(inside, [(name, member.size) for name, member in self._members.items()], self.path)

    def _read(self, name: str) -> bytes:
        member = self._members[name]
        if member.size > LARGEST:
            raise OSError
        content = self._tar.extractfile(member)
        assert content is not None  # it is a plain file
        return content.read()

    def __exit__(self, *error: object) -> None:
        if "_tar" in vars(self):
            self._tar.fileobj.close()


def _below(inside: str, files: Collection[tuple[str, int]], archive: Path) -> dict[str, int]:
    """Name below ``inside`` -> bytes, without hidden files and folders."""
    prefix = f"{inside}/" if inside else ""
    kept = [(name.removeprefix(prefix), size) for name, size in files if name.startswith(prefix)]
    return _unique([entry for entry in kept if not any(part.startswith(".") for part in entry[0].split("/"))], archive)


def _unique(files: Collection[tuple[str, Any]], archive: Path) -> dict[str, Any]:
    """The pairs as a dict. Raises DatasetError if two have the same name."""
    if len(dict(files)) < len(files):
        raise DatasetError(f"{archive} holds two files of the same name. Fetch it again.")
    return dict(files)


def first_existing(root: Path, names: Iterable[str]) -> Path:
    """The first of the files or folders below ``root`` that exists. Raises DatasetError naming them all."""
    names = list(names)
    for name in names:
        if (root / name).exists():
            return root / name
    raise DatasetError(f"{root} holds no {' and no '.join(names)}")


def check_files(files: Mapping[str, int], expected: Collection[str], folder: object) -> None:
    """Raise DatasetError when ``files`` lacks an expected picture, or has a file that is not expected."""
    expected = set(expected)
    missing, extra = sorted(expected - files.keys()), sorted(files.keys() - expected)
    if missing:
        raise DatasetError(
            f"{folder}: {len(missing)} of {len(expected)} pictures of the lists are missing (the first: {missing[0]}). "
            "Unpack or fetch the set again."
        )
    if extra:
        raise DatasetError(
            f"{folder}: {len(extra)} files are in no list of the set (the first: {extra[0]}). Move them away."
        )


def write_manifest(files: Mapping[str, int | str], output: Path) -> Path:
    """Write each name and its value to ``output`` if they changed: Snakemake reruns jobs when the file changes."""
    text = "".join(f"{name}\t{value}\n" for name, value in sorted(files.items()))
    return write_if_changed(output, text)
