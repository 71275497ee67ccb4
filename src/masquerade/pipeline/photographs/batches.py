"""The steps from a folder of photographs to a folder of anonymized or recovered faces.

One run at a time writes into a folder: it holds a lock there. Finished images come to their place after their rows
are in the report.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from filelock import FileLock, SoftFileLock, Timeout

from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.core.images import REFUSED, ArchiveWriter, FaceArchive, MemoryArchive
from masquerade.faces import Record
from masquerade.faces.folder import Folder, PhotographRecord
from masquerade.faces.photographs.names import files
from masquerade.pipeline import image_texts
from masquerade.pipeline.outputs import REPORT, FolderOutput, Report
from masquerade.pipeline.release import LARGE, Anonymized, Recovered, Row, remove_face
from masquerade.pipeline.whole_photographs import FOLDER as PHOTOGRAPHS

Work = Callable[[FaceArchive, MemoryArchive], None]
"""Reads an archive of aligned faces and writes the archive of their results."""
Progress = Callable[[str], None]
BATCH = 16
WORTHWHILE = 8
"""The fewest photographs for which another process pays that reads them: it imports for a second."""
MOST_READERS = 8
"""Each takes 300 MB."""
UNFINISHED = ".unfinished"  # below the results: images whose rows are not in the report yet
DOT_FOLDER = ".masquerade"  # below the results: the lock of the run that writes them, and what tells their photographs
LOCK = f"{DOT_FOLDER}/lock"


def check_output(output: Path, source: Path, overwrite: bool, go_on: bool = False) -> None:
    """Raise MasqueradeError when the results would mix with other files, or with those of a run that is at work.

    ``go_on``: add to the report that is there.
    """
    if overwrite and go_on:
        raise MasqueradeError("--continue keeps results, and --overwrite replaces them. Leave one out.")
    if not source.exists():
        raise MasqueradeError(f"{source} does not exist. Name a folder of images, or one image.")
    if not source.is_file() and output.resolve().is_relative_to(source.resolve()):
        raise MasqueradeError(
            f"{output} lies in {source}: the next run would read the results as images. Name another folder."
        )
    if output.exists() and not output.is_dir():
        raise MasqueradeError(f"{output} is not a folder. Name a folder for the results.")
    if (output / LOCK).exists():
        with lock_folder(output):
            pass
    _check_present(output, overwrite, go_on)


@contextmanager
def reserve(output: Path, overwrite: bool, go_on: bool = False) -> Iterator[None]:
    """Keep other runs out of ``output``. Raises MasqueradeError as `check_output`: one may have ended since."""
    with lock_folder(output):
        _check_present(output, overwrite, go_on)
        yield


def _check_present(output: Path, overwrite: bool, go_on: bool) -> None:
    """Raise MasqueradeError if ``output`` holds what this run may neither replace nor continue. Hidden files may be."""
    present = {path.name for path in output.iterdir() if path.name[0] != "."} if output.is_dir() else set()
    if present and not (overwrite or (go_on and REPORT in present)):
        raise MasqueradeError(
            f"{output} holds no {REPORT} to continue. Name another folder, or add --overwrite."
            if go_on
            else f"{output} is not empty. Name another folder, or add --overwrite; --continue goes on with a batch."
        )


def count_readers(source: Path) -> int:
    """How many processes read these photographs beside this one: finding a face takes longer than most methods.

    As many as there are cores, and 0 for a few photographs.
    """
    many = len(list(islice(files(source), WORTHWHILE))) == WORTHWHILE
    return min(len(os.sched_getaffinity(0)), MOST_READERS) if many else 0


def is_not_a_face(file: str) -> bool:
    """Whether a file beside anonymized faces is none of them: the report, a whole photograph or a large image."""
    return file == REPORT or file.startswith((f"{PHOTOGRAPHS}/", f"{LARGE}/"))


@dataclass(frozen=True)
class Steps:
    """What happens to the faces of photographs.

    ``work``: makes their results. ``release``: writes these. ``find_facts``: gives the salt and the check of a face
    from its row; None: it has none. ``size``: of the faces in pixels. ``together``: the method must see all faces at
    once. ``progress`` is called with a text: how many faces and refused files were read.
    """

    work: Work
    release: Anonymized | Recovered
    find_facts: Callable[[Row], Row] | None
    size: int
    together: bool = False
    progress: Progress = lambda text: None


def process(
    source: Folder, output: Path, steps: Steps, *, skip: Callable[[str], bool] = REPORT.__eq__,
    done: Sequence[Row] = (), readers: int = 0,
    remember: Callable[[Mapping[str, bytes]], None] = lambda sha256: None,
) -> tuple[list[Row], dict]:  # fmt: skip
    """Process the photographs in parts, and release the faces of each part before the next files are read.

    ``skip``: whether a file in the folder is no photograph, but written by this program. ``done``: rows of an earlier
    run, whose files are left out. ``readers``: so many processes read the photographs beside this one; 0: none.
    ``remember`` gets the SHA-256 of the files whose rows are in the report. Returns the rows of the report and the
    statement of the method ({} if it makes none). Raises MasqueradeError when the folder has no file, and when a disk
    is full.
    """
    source.left_out = {row["file"] for row in done}
    all_records = source.records_beside(readers, steps.size, 0) if readers else source.records(steps.size, 0, workers=1)
    records = (record for record in all_records if not skip(record.row["file"]))
    report, statement = Report(output / REPORT, steps.release.columns), {}
    if done:
        report.begin(done)
    with name_full_disk(output), make_unfinished_folder(output) as unfinished:
        for part in release_parts(records, steps, len(report.rows)):
            report.add(part.rows)  # before the images appear: none is without its row, however this process ends
            remember(part.sha256)
            move_to_place(part.rows, unfinished, output)
            statement = part.statement or statement
    if not report.rows:
        raise MasqueradeError(f"There is no file in {source.location}. Name a folder with images.")
    return report.rows, statement


@dataclass(frozen=True)
class Part:
    """Released faces: their rows, the statement of the method, and the SHA-256 of their files by name."""

    rows: list[Row]
    statement: dict
    sha256: dict[str, bytes]


def release_parts(records: Iterator[PhotographRecord], steps: Steps, done: int = 0) -> Iterator[Part]:
    """Release the faces of some files after those of others. ``done``: the number of rows before these.

    Aligned originals and results that nobody has judged are in memory alone: no file of a process that was killed holds
    them.
    """
    for part in _split(records, steps.together):
        originals, results, clear, sha256 = MemoryArchive(), MemoryArchive(), {}, {}
        with ArchiveWriter(originals) as out:
            for record in part:
                clear[record.row["id"]] = [record.detailed, *record.others]
                sha256[record.row["file"]] = record.sha256
                out.add(*_add_facts(record, steps.find_facts))
                steps.progress(f"Faces and refused files so far: {done + len(out.rows)}")
        steps.work(FaceArchive(originals), results)
        result = FaceArchive(results)
        rows = steps.release.publish(FaceArchive(originals), result, clear)
        done += len(rows)
        yield Part(rows, result.metadata.get("statement") or {}, sha256)


def _add_facts(record: Record, find_facts: Callable[[Row], Row] | None) -> tuple[np.ndarray | None, Row]:
    """The image and the row of a record, with salt and check. A face that these do not fit becomes a refusal."""
    row = {**record.row, image_texts.SALT: "", image_texts.CHECK: ""}
    if find_facts is None or record.picture is None:
        return record.picture, row
    try:
        return record.picture, row | find_facts(record.row)
    except PictureError as error:
        return None, {**row, "status": REFUSED, "reason": str(error)}


def _split(records: Iterator[PhotographRecord], together: bool) -> Iterator[Iterator[PhotographRecord]]:
    """The faces of 1, 2, 4, ... BATCH files: the first result comes early, and later ones gain from a full batch."""
    size = 1
    for first in records:
        yield _read_files(first, records, None if together else size)
        size = min(2 * size, BATCH)


def _read_files(
    first: PhotographRecord, records: Iterator[PhotographRecord], count: int | None
) -> Iterator[PhotographRecord]:
    """``first`` and the records after it, up to the last face of ``count`` files (None: all); none is read beyond."""
    for number, record in enumerate(chain([first], records), start=1):
        yield record
        yield from islice(records, record.row["file_faces"] - 1)
        if number == count:
            return


@contextmanager
def lock_folder(output: Path) -> Iterator[None]:
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
def make_unfinished_folder(output: Path) -> Iterator[Path]:
    """The folder of images without a row; it is deleted at the end, and so is that of a process that was killed."""
    folder = output / UNFINISHED
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_to_place(rows: Sequence[Row], unfinished: Path, output: Path) -> None:
    """Move the images of ``rows`` to their place, and remove those that an earlier run made of the same files."""
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
def name_full_disk(folder: Path) -> Iterator[None]:
    """Raises MasqueradeError for an error of the system that says that the disk of ``folder`` is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise MasqueradeError(
            f"The disk of {folder} is full. Make room and run this again; `anonymize --continue` goes on."
        ) from error
