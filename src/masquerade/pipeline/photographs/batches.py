"""The steps from a folder of photographs to a folder of anonymized or recovered faces."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

import numpy as np

from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.core.images import REFUSED, ArchiveWriter, FaceArchive, MemoryArchive
from masquerade.faces import Record
from masquerade.faces.folder import Folder, PhotographRecord
from masquerade.faces.photographs.names import files
from masquerade.pipeline import salts
from masquerade.pipeline.photographs import placing
from masquerade.pipeline.photographs.contents import Contents
from masquerade.pipeline.release import LARGE, Anonymized, Recovered, Row
from masquerade.pipeline.reports import REPORT, Report
from masquerade.pipeline.whole_photographs import FOLDER as PHOTOGRAPHS

Work = Callable[[FaceArchive, MemoryArchive], None]
"""Reads an archive of aligned faces and writes the archive of their results."""
BATCH = 16
WORTHWHILE = 8
"""The fewest photographs for which another process pays that reads them: it imports for a second."""
MOST_READERS = 8
"""Each takes 300 MB."""


def check_output(output: Path, source: Path, overwrite: bool, go_on: bool = False) -> None:
    """Raise MasqueradeError when the results would mix with other files, or with those of a run that is at work.

    ``go_on``: add to the report that is there.
    """
    if overwrite and go_on:
        raise MasqueradeError("--continue keeps results, and --overwrite replaces them. Leave one out.")
    if not source.exists():
        raise MasqueradeError(f"{source} does not exist. Name a folder of pictures, or one picture.")
    if not source.is_file() and output.resolve().is_relative_to(source.resolve()):
        raise MasqueradeError(
            f"{output} lies in {source}: the next run would read the results as pictures. Name another folder."
        )
    if output.exists() and not output.is_dir():
        raise MasqueradeError(f"{output} is not a folder. Name a folder for the results.")
    if (output / placing.LOCK).exists():
        with placing.alone_in(output):
            pass
    _check_present(output, overwrite, go_on)


@contextmanager
def reserve(output: Path, overwrite: bool, go_on: bool = False) -> Iterator[None]:
    """Keep other runs out of ``output``. Raises MasqueradeError as `check_output`: one may have ended since."""
    with placing.alone_in(output):
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


def readers(source: Path) -> int:
    """How many processes read these photographs beside this one: finding a face takes longer than most methods.

    As many as there are cores, and 0 for a few photographs.
    """
    many = len(list(islice(files(source), WORTHWHILE))) == WORTHWHILE
    return min(len(os.sched_getaffinity(0)), MOST_READERS) if many else 0


def ours(file: str) -> bool:
    """Whether a file beside anonymized faces is none of them: the report, a whole photograph or a large picture."""
    return file == REPORT or file.startswith((f"{PHOTOGRAPHS}/", f"{LARGE}/"))


def process(
    source: Folder, output: Path, size: int, work: Work, whole: bool,
    progress: Callable[[str], None], release: Anonymized | Recovered, facts: Callable[[Row], Row] | None = None,
    ours: Callable[[str], bool] = REPORT.__eq__, kept: Sequence[Row] = (), readers: int = 0,
    contents: Contents | None = None,
) -> tuple[list[Row], dict]:  # fmt: skip
    """Process the photographs in parts, and release the faces of each part before the next files are read.

    ``ours``: whether a file in the folder is none of the pictures, but written by this program. ``kept``: rows of an
    earlier run, whose files are left out. ``readers``: so many processes read the photographs beside this one; 0: none.
    ``contents``: remembers the files of the rows. The other arguments are those of `release_parts`. Returns the rows of
    the report and the statement of the method ({} if it makes none). Raises MasqueradeError when the folder has no
    file, and when a disk is full.
    """
    source.left_out = {row["file"] for row in kept}
    read = source.records_beside(readers, size, 0) if readers else source.records(size, 0, workers=1)
    records = (record for record in read if not ours(record.row["file"]))
    report, statement = Report(output / REPORT, release.columns), {}
    if kept:
        report.begin(kept)
    full = placing.naming_a_full_disk(output, "`anonymize --continue` goes on.")
    with full, placing.unfinished_in(output) as unfinished:
        for rows, stated, sha256 in release_parts(records, work, whole, progress, release, facts, len(report.rows)):
            report.add(rows)  # before the pictures appear: none is without its row, however this process ends
            if contents:
                contents.add(sha256)
            placing.place(rows, unfinished, output)
            statement = stated or statement
    if not report.rows:
        raise MasqueradeError(f"There is no file in {source.location}. Name a folder with pictures.")
    return report.rows, statement


def release_parts(
    records: Iterator[PhotographRecord], work: Work, whole: bool, progress: Callable[[str], None],
    release: Anonymized | Recovered, facts: Callable[[Row], Row] | None = None, done: int = 0,
) -> Iterator[tuple[list[Row], dict, dict[str, bytes]]]:  # fmt: skip
    """Release the faces of some files after those of others.

    Each part gives its rows, the statement of the method, and the SHA-256 of its files by their names.

    ``whole``: all faces are one part, for a method that must see them together. ``progress`` is called with a text: how
    many faces and refused files were read, with ``done`` before these. ``facts`` gives the salt and the check of a face
    from its row. Aligned originals and results that nobody has judged are in memory alone: no file of a process that
    was killed holds them.
    """
    for part in _parts(records, whole):
        originals, results, clear, sha256 = MemoryArchive(), MemoryArchive(), {}, {}
        with ArchiveWriter(originals) as out:
            for record in part:
                clear[record.row["id"]] = [record.detailed, *record.others]
                sha256[record.row["file"]] = record.sha256
                out.add(*_with_facts(record, facts))
                progress(f"Faces and refused files so far: {done + len(out.rows)}")
        work(FaceArchive(originals), results)
        result = FaceArchive(results)
        rows = release.publish(FaceArchive(originals), result, clear)
        done += len(rows)
        yield rows, result.facts.get("statement") or {}, sha256


def _with_facts(record: Record, facts: Callable[[Row], Row] | None) -> tuple[np.ndarray | None, Row]:
    """The picture and the row of a record, with salt and check. A face that these do not fit becomes a refusal."""
    row = {**record.row, salts.SALT: "", salts.CHECK: ""}
    if facts is None or record.picture is None:
        return record.picture, row
    try:
        return record.picture, row | facts(record.row)
    except PictureError as error:
        return None, {**row, "status": REFUSED, "reason": str(error)}


def _parts(records: Iterator[PhotographRecord], whole: bool) -> Iterator[Iterator[PhotographRecord]]:
    """The faces of 1, 2, 4, ... BATCH files: the first result comes early, and later ones gain from a full batch."""
    size = 1
    for first in records:
        yield _of_files(first, records, None if whole else size)
        size = min(2 * size, BATCH)


def _of_files(
    first: PhotographRecord, records: Iterator[PhotographRecord], count: int | None
) -> Iterator[PhotographRecord]:
    """``first`` and the records after it, up to the last face of ``count`` files (None: all); none is read beyond."""
    for number, record in enumerate(chain([first], records), start=1):
        yield record
        yield from islice(records, record.row["file_faces"] - 1)
        if number == count:
            return
