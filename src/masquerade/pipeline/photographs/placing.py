"""Puts finished pictures to their place after their rows are in the report, and names a full disk."""

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from masquerade.core.errors import MasqueradeError
from masquerade.pipeline.outputs import FolderOutput
from masquerade.pipeline.release import Row, remove_face
from masquerade.pipeline.whole_photographs import FOLDER as PHOTOGRAPHS

UNFINISHED = ".unfinished"  # below the results: pictures whose rows are not in the report yet


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
