"""Where the files of a published dataset lie: an unpacked folder, or the archive as it was published.

A tree is read by names such as ``CelebA-HQ-img/0.jpg``, whatever holds them. Hidden files are not looked at.
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

from masquerade.errors import DatasetError, PictureError

LARGEST = 2**26  # bytes of one file: more is no photograph, and may be an archive bomb
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, struct.error, zlib.error,
           zipfile.BadZipFile, tarfile.TarError)  # fmt: skip


class Tree(ABC):
    """Files by name. ``path`` is the folder or archive, for people. Use as a context manager."""

    def __init__(self, path: Path):
        self.path = path

    @abstractmethod
    def sizes(self, inside: str) -> dict[str, int]:
        """Name below ``inside`` -> bytes, of every regular file there that is not hidden. Raises DatasetError."""

    @abstractmethod
    def _read(self, name: str) -> bytes:
        """The content, or KeyError, or one of the errors of damage."""

    def read(self, name: str) -> bytes:
        """The content of a file. Raises PictureError, with a reason that can stand in a report, where it is damaged."""
        try:
            return self._read(name)
        except KeyError as error:
            raise PictureError("the file has gone") from error
        except _BROKEN as error:
            raise PictureError(f"cannot be read from {self.path.name} ({type(error).__name__})") from error

    def text(self, name: str) -> str:
        """The content of a list. Raises DatasetError."""
        try:
            return self.read(name).decode("utf-8")
        except (PictureError, UnicodeDecodeError) as error:
            raise DatasetError(f"{self.path}: {name} cannot be read ({error}). Fetch it again.") from error

    def files(self) -> list[Path]:
        """The files of an archive, as the rule of the data lists them."""
        return [self.path]

    def __enter__(self) -> "Tree":
        return self

    def __exit__(self, *error: object) -> None:
        return None


class FolderTree(Tree):
    """Files below a folder. Links are followed: whoever places a dataset may keep it on another disk."""

    def sizes(self, inside: str) -> dict[str, int]:
        root = self.path / inside
        return {os.path.relpath(entry.path, root): entry.stat().st_size for entry in _scanned(root) if entry.is_file()}

    def _read(self, name: str) -> bytes:
        path = self.path / name
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:  # opening a pipe would wait for ever
            raise OSError
        return path.read_bytes()


def _scanned(folder: Path | str) -> Iterable[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    yield from _scanned(entry.path)
                else:
                    yield entry
    except OSError as error:
        raise DatasetError(f"{folder} cannot be listed ({error.strerror}).") from error


class ZipTree(Tree):
    """Files of a zip, below its folder ``top`` ('': all of it)."""

    def __init__(self, path: Path, top: str = ""):
        super().__init__(path)
        self._top = f"{top}/" if top else ""

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is no whole zip file ({error}). Fetch it again.") from error

    def sizes(self, inside: str) -> dict[str, int]:
        found = [(entry.filename, entry.file_size) for entry in self._zip.infolist() if not entry.is_dir()]
        return _below(f"{self._top}{inside}", found, self.path)

    def _read(self, name: str) -> bytes:
        entry = self._zip.getinfo(f"{self._top}{name}")
        if entry.file_size > LARGEST:
            raise OSError
        return self._zip.read(entry)

    def __exit__(self, *error: object) -> None:
        if "_zip" in vars(self):
            self._zip.close()


class TarTree(Tree):
    """Files of a ``.tgz``. It is unpacked once, as a whole, into a temporary file that nobody else sees."""

    @cached_property
    def _tar(self) -> tarfile.TarFile:
        import gzip

        try:
            plain = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the tree
            with gzip.open(self.path) as packed:
                copyfileobj(packed, plain, 2**20)
            plain.seek(0)
            return tarfile.open(fileobj=plain, mode="r:")
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is no whole .tgz file ({error}). Fetch it again.") from error

    @cached_property
    def _members(self) -> dict[str, tarfile.TarInfo]:
        try:
            found = [(PurePosixPath(member.name).as_posix(), member) for member in self._tar if member.isreg()]
        except _BROKEN as error:
            raise DatasetError(f"{self.path} is no whole .tgz file ({error}). Fetch it again.") from error
        if len(dict(found)) < len(found):
            raise DatasetError(f"{self.path} holds files of the same name. Fetch it again.")
        return dict(found)

    def sizes(self, inside: str) -> dict[str, int]:
        return _below(inside, [(name, member.size) for name, member in self._members.items()], self.path)

    def _read(self, name: str) -> bytes:
        member = self._members[name]
        if member.size > LARGEST:
            raise OSError
        return self._tar.extractfile(member).read()

    def __exit__(self, *error: object) -> None:
        if "_tar" in vars(self):
            self._tar.fileobj.close()


def _below(inside: str, files: Collection[tuple[str, int]], archive: Path) -> dict[str, int]:
    prefix = f"{inside}/" if inside else ""
    kept = [(name.removeprefix(prefix), size) for name, size in files if name.startswith(prefix)]
    shown = [(name, size) for name, size in kept if not any(part.startswith(".") for part in name.split("/"))]
    if len(dict(shown)) < len(shown):
        raise DatasetError(f"{archive} holds files of the same name. Fetch it again.")
    return dict(shown)


def found(root: Path, wanted: Iterable[str]) -> Path:
    """The first of the ``wanted`` files or folders below ``root`` that is there. Raises DatasetError naming them."""
    wanted = list(wanted)
    for name in wanted:
        if (root / name).exists():
            return root / name
    raise DatasetError(f"{root} holds no {' and no '.join(wanted)}")


def same_files(there: Mapping[str, int], expected: Collection[str], where: object) -> None:
    """Raises DatasetError where pictures are missing, or files are there that the set has not."""
    expected = set(expected)
    missing, extra = sorted(expected - there.keys()), sorted(there.keys() - expected)
    if missing:
        raise DatasetError(
            f"{where}: {len(missing)} of {len(expected)} pictures that the lists name are missing (the first: "
            f"{missing[0]}). Unpack or fetch the set again."
        )
    if extra:
        raise DatasetError(
            f"{where}: {len(extra)} files are in no list of the set (the first: {extra[0]}). Move them away."
        )


def write_manifest(sizes: Mapping[str, int], output: Path) -> Path:
    """Write names and sizes to ``output``, but only if they changed: Snakemake watches it in the place of a folder."""
    text = "".join(f"{name}\t{size}\n" for name, size in sorted(sizes.items()))
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = output.with_name(f".{output.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(output)
    return output
