"""Unpacks one file of a published archive. An archive may be hostile, so nothing else of it is written."""

import bz2
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from masquerade.assets.fetching import check_space
from masquerade.core.errors import AssetError

_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
CHUNK = 1 << 20


def unpack(archive: Path, member: str, target: Path) -> None:
    """Write the file ``member`` of a .zip, a .tar (however packed) or a .bz2 (``member`` is '') to ``target``.

    Raises AssetError if the member is missing or no plain file, or if the archive is damaged. No ``target`` is left.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(archive, member) as (source, size), target.open("wb") as file:
            check_space(target.parent, size, target.name)
            while chunk := source.read(CHUNK):
                if not size:  # a .bz2 does not give the size of its content
                    check_space(target.parent, len(chunk), target.name)
                file.write(chunk)
    except _BROKEN as error:
        target.unlink(missing_ok=True)
        raise AssetError(
            f"{archive} is damaged or no archive ({type(error).__name__}: {error}). Get it again."
        ) from error
    except AssetError:
        target.unlink(missing_ok=True)
        raise


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """(the member, its size in bytes, or 0 if unknown)."""
    if not member:
        with bz2.open(archive) as source:
            yield source, 0
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            if member not in opened.namelist():
                raise _lacking(archive, member, opened.namelist())
            with opened.open(member) as source:
                yield source, opened.getinfo(member).file_size
    else:
        with tarfile.open(archive) as opened:
            entry = next((item for item in opened if item.name.removeprefix("./") == member), None)
            if entry is None:
                raise _lacking(archive, member, opened.getnames())
            if not entry.isreg():
                raise AssetError(f"{archive}: {member} is no plain file, but a link or a device. Do not trust it.")
            content = opened.extractfile(entry)
            assert content is not None  # it is a plain file
            yield content, entry.size


def _lacking(archive: Path, member: str, names: list[str]) -> AssetError:
    return AssetError(f"{archive} holds no {member}; it holds {', '.join(sorted(names)[:8])}.")
