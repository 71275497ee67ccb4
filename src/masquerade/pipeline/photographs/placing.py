"""Puts finished pictures to their place after their rows are in the report, and names a full disk.

One run at a time writes into a folder: it holds a lock there.
"""

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from masquerade.core.errors import MasqueradeError
from masquerade.pipeline.outputs import FolderOutput
from masquerade.pipeline.release import Row, remove_face
from masquerade.pipeline.whole_photographs import FOLDER as PHOTOGRAPHS

UNFINISHED = ".unfinished"  # below the results: pictures whose rows are not in the report yet
HIDDEN = ".masquerade"  # below the results: the lock of the run that writes them, and what tells their photographs
LOCK = f"{HIDDEN}/lock"


@contextmanager
def alone_in(output: Path) -> Iterator[None]:
    """Keeps every other run out of ``output``, also one of another computer that shares the folder.

    The lock is `flock`: it ends with its process, however that ends, and the file stays without a meaning. Where a file
    system has no `flock`, the file is the lock, and one of a computer that went down has to be deleted. Raises
    MasqueradeError if another run holds it, and if the file system cannot lock at all.
    """
    path = output / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        remedy = f" If none does, because its computer went down, delete {path}." * isinstance(lock, SoftFileLock)
        raise MasqueradeError(
            f"Another run writes into {output} now. Wait until it ends, or name another folder.{remedy}"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise MasqueradeError(
            f"The file system of {output} cannot lock a file ({error.strerror}), so two runs would mix their results. "
            "Name a folder on another one."
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def unfinished_in(output: Path) -> Iterator[Path]:
    """The folder of pictures without a row; it is deleted at the end, and so is that of a process that was killed."""
    folder = output / UNFINISHED
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(rows: Sequence[Row], unfinished: Path, output: Path) -> None:
    """Move the pictures of ``rows`` to their place, and remove those that an earlier run made of the same files."""
    for row in rows:
        remove_face(FolderOutput(output), row["id"])
        for ending in (".jpg", ".png"):
            (output / PHOTOGRAPHS / f"{row['file_id']}{ending}").unlink(missing_ok=True)
    for path in sorted(unfinished.rglob("*")):
        if path.is_file():
            target = output / path.relative_to(unfinished)
            target.parent.mkdir(exist_ok=True)
            path.replace(target)


@contextmanager
def naming_a_full_disk(folder: Path, remedy: str) -> Iterator[None]:
    """Raises MasqueradeError for an error of the system that says that the disk of ``folder`` is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise MasqueradeError(f"The disk of {folder} is full. Make room and run this again; {remedy}") from error
