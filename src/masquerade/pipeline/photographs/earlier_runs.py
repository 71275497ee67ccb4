"""What an earlier run left beside its images: a batch that goes on keeps its rows, and a recovery finds its salts.

A name does not tell which photographs are done: cameras start again at IMG_0001, and photographs are edited. So salted
hashes of the photographs lie hidden in the folder of the results. They prove to whoever has a photograph that it was in
the batch, so they are in no report; without the random salt they could be looked up in lists of known files.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath

from masquerade.core import files
from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.core.images import OK
from masquerade.faces.folder import Folder
from masquerade.faces.photographs.names import folder_of
from masquerade.faces.photographs.names import names as names_below
from masquerade.methods import Method
from masquerade.params.parameters import Parameters
from masquerade.pipeline import image_texts, release
from masquerade.pipeline.image_texts import PersonalKey, ProvenanceTag
from masquerade.pipeline.outputs import REPORT, Report, read_report
from masquerade.pipeline.photographs import choosing
from masquerade.pipeline.photographs.batches import DOT_FOLDER
from masquerade.pipeline.photographs.choosing import FolderOptions
from masquerade.pipeline.release import Anonymized, Original, Row
from masquerade.pipeline.whole_photographs import HIDDEN

logger = logging.getLogger(__name__)
CONTENTS = f"{DOT_FOLDER}/contents.csv"
LENGTH = 16  # bytes of a salt


class Contents:
    """The salted hashes of the files whose rows are in the report of ``output``. `begin` is called before `add`."""

    def __init__(self, output: Path):
        self.output = output
        self._report = Report(output / CONTENTS, ("file", "salt", "sha256"))
        rows = files.parse_csv(self._report.path.read_text(encoding="utf-8")) if self.exists else []
        self._by_file = {row["file"]: row for row in rows}

    @property
    def exists(self) -> bool:
        """Whether the folder has hashes."""
        return self._report.path.is_file()

    def fits(self, file: str, sha256: bytes) -> bool:
        """Whether the row of ``file`` is of a photograph with this hash."""
        row = self._by_file.get(file)
        return row is not None and row["sha256"] == _salt(row["salt"], sha256)

    def begin(self, done: Collection[str]) -> None:
        """Forget all files but those that are ``done``. It is done before their rows are replaced."""
        self._report.begin(row for file, row in self._by_file.items() if file in done)

    def add(self, sha256: Mapping[str, bytes]) -> None:
        """Remember files, name -> hash. It is done after their rows are in the report: no hash is of another row."""
        salts = {file: secrets.token_hex(LENGTH) for file in sha256}
        self._report.add([
            {"file": file, "salt": salts[file], "sha256": _salt(salts[file], content)}
            for file, content in sha256.items() if content
        ])  # fmt: skip


def _salt(salt: str, sha256: bytes) -> str:
    return hashlib.sha256(salt.encode() + sha256).hexdigest()


def resume(
    contents: Contents, photographs: Folder, method: Method, tag: ProvenanceTag, key: PersonalKey | None, whole: bool,
    options: FolderOptions,
) -> list[Row]:  # fmt: skip
    """The rows of each photograph that is complete: judged, with its files there. [] without a report.

    The images of the other rows are removed. A photograph that was refused before a method saw it is not kept,
    because it may have been mended since; nor is one whose name another file has now, by the ``contents``. To be
    complete takes the whole photograph with ``whole``, and with the ``options`` the large images and sealed records. A
    face that the method cannot describe is complete without a record: another attempt would fail, too.
    Raises MasqueradeError if the report is of another method, variant, scale, network or key, because half of the
    results would be of each, for a method that sees all faces together, and if the contents are not known.
    """
    output = contents.output
    path = output / REPORT
    rows = [{column: row.get(column, "") for column in Anonymized.columns} for row in read_report(path)]
    if rows and method.observes:
        raise MasqueradeError(f"{method.title} must see all faces together, so it cannot go on. Take --overwrite.")
    other_tags = {row[image_texts.MAKER] for row in rows} - {"", str(tag)}
    if other_tags:
        raise MasqueradeError(f"{path} is of '{min(other_tags)}', and this is '{tag}'. Name another folder.")
    with_check = [row for row in rows if row[image_texts.CHECK] not in ("", image_texts.UNCHECKED)]
    if key and with_check:
        try:
            key.verify(with_check[0][image_texts.SALT], with_check[0][image_texts.CHECK])
        except PictureError as error:
            raise MasqueradeError(f"{path} is of another key ({error}). Name another folder.") from error

    if any(row[image_texts.MAKER] for row in rows) and not contents.exists:
        raise MasqueradeError(
            f"{output} does not tell which photographs are done: {output / CONTENTS} is lost. Name another folder, or "
            "take --overwrite."
        )

    def is_complete(row: Row) -> bool:
        if options.record and row["status"] == OK and row[image_texts.RECORD] not in (release.YES, release.IMPOSSIBLE):
            return False
        names = [row["output"], *([row["large"]] if options.large else [])] if row["status"] == OK else []
        if whole and not row["photograph_reason"]:
            names.append(row["photograph"])
        return all(name and _is_written(output / name) for name in names)

    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["file"], []).append(row)
    done: list[Row] = []
    exchanged: list[str] = []
    for file, group in groups.items():
        sha256 = photographs.sha256(file)  # None: a photograph that is gone; its results stay
        if _was_processed(group) and sha256 is not None and not contents.fits(file, sha256):
            exchanged.append(file)
        elif _was_processed(group) and all(map(is_complete, group)):
            done += group
            continue
        _remove(output, group)
    if exchanged:
        logger.warning(
            "%d of the photographs are others than those that had their names, such as %s. They are anonymized anew.",
            len(exchanged), exchanged[0],
        )  # fmt: skip
    return done


def _remove(output: Path, rows: list[Row]) -> None:
    """Remove the images that rows name, inside ``output`` alone: somebody may have edited the report."""
    for path in [output / row[column] for row in rows for column in ("output", "large", "photograph") if row[column]]:
        if path.is_file() and path.resolve().is_relative_to(output.resolve()):
            path.unlink()


def _was_processed(rows: list[Row]) -> bool:
    """Whether a method saw the photograph, or all its faces were hidden, and its name is whole: two names without valid
    text may look alike.
    """
    return any(row[image_texts.MAKER] or row["status"] == HIDDEN for row in rows) and "\ufffd" not in rows[0]["file"]


def _is_written(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def find_originals(parameters: Parameters, pictures: Path, source: Path) -> dict[str, Original]:
    """Name of an anonymized image, without its ending -> its original in the photographs at ``source``.

    Raises MasqueradeError if none is there.
    """
    names = {PurePosixPath(name).stem for name in names_below(pictures)}
    photographs = choosing.open_photographs(parameters, source, faces="all", alignment="ffhq")
    originals = release.find_originals(photographs, parameters.image.size, names)
    if not originals:
        raise MasqueradeError(f"{source} holds no original of these images. Name the folder that was anonymized.")
    return originals


def find_facts(
    folder: Folder, tag: ProvenanceTag, key: PersonalKey, no_salt: bool, from_image: bool
) -> Callable[[Row], Row]:  # fmt: skip
    """Finds salt and check of an anonymized image: in its PNG, or in the report beside it, if it lies in a folder.

    ``no_salt``: an image without a known salt was anonymized without one. ``from_image``: the sealed record in the PNG
    does not count. Raises PictureError if anything else than ``tag`` or ``key`` made the image, and if its salt is
    lost.
    """
    rows = read_report(folder_of(folder.location) / REPORT) if folder.params.path else []
    by_stem = {PurePosixPath(row["output"]).stem: row for row in rows if row["output"]}
    unsalted = not any(row.get(image_texts.SALT) for row in by_stem.values())

    def find(row: Row) -> Row:
        texts = folder.texts(row["file_id"])
        in_report = None if image_texts.states_provenance(texts) else by_stem.get(PurePosixPath(row["file"]).stem)
        facts = image_texts.read_texts(texts) if in_report is None else in_report
        tag.check(facts.get(image_texts.MAKER, ""))
        without = image_texts.states_provenance(texts) or (in_report is not None and unsalted) or no_salt
        salt, check = facts.get(image_texts.SALT, ""), facts.get(image_texts.CHECK, "")
        image_texts.check_known(salt, without)
        key.verify(salt, check)
        record = "" if from_image else texts.get(image_texts.RECORD_KEYWORD, "")
        return {image_texts.SALT: salt, image_texts.CHECK: check, image_texts.RECORD: record}

    return find
