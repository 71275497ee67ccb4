"""The steps from a folder of photographs to a folder of anonymized or recovered faces."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from masquerade.cli import placing
from masquerade.core import determinism, discovery
from masquerade.core.errors import MasqueradeError, ParameterError, PictureError
from masquerade.core.images import REFUSED, ArchiveWriter, FaceArchive
from masquerade.core.settings import Settings
from masquerade.faces import Record
from masquerade.faces.folder import Folder, PhotographRecord, folder_of
from masquerade.faces.folder import files as files_below
from masquerade.methods import Method
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import makers, method_files, reports, salts
from masquerade.pipeline.inspection import Inspector, Threshold, threshold
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.method_files import Say
from masquerade.pipeline.release import LARGE, Anonymized, Recovered, Row, originals_of
from masquerade.pipeline.reports import REPORT, Report
from masquerade.pipeline.salts import PersonalKey
from masquerade.pipeline.whole_photographs import FOLDER as PHOTOGRAPHS
from masquerade.pipeline.whole_photographs import WholePhotographs

logger = logging.getLogger(__name__)

BATCH = 16
# Values of a variant's knobs for real photographs, if it has these knobs: noise that cannot be repeated, and a
# sensitivity that holds for every face, not only for the faces of this folder.
STRICT = {"sampler": "opendp", "sensitivity": "bound"}


def check_output(output: Path, source: Path, overwrite: bool, go_on: bool = False) -> None:
    """Raise MasqueradeError when the results would mix with other files. ``go_on``: add to the report that is there."""
    if overwrite and go_on:
        raise MasqueradeError("--continue keeps results, and --overwrite replaces them. Leave one out.")
    if not source.is_file() and output.resolve().is_relative_to(source.resolve()):
        raise MasqueradeError(
            f"{output} lies in {source}: the next run would read the results as pictures. Name another folder."
        )
    if output.exists() and not output.is_dir():
        raise MasqueradeError(f"{output} is not a folder. Name a folder for the results.")
    if output.is_dir() and any(output.iterdir()) and not (overwrite or (go_on and (output / REPORT).is_file())):
        raise MasqueradeError(
            f"{output} holds no {REPORT} to continue. Name another folder, or add --overwrite."
            if go_on
            else f"{output} is not empty. Name another folder, or add --overwrite; --continue goes on with a batch."
        )


def method(
    root: Path, parameters: Parameters, name: str, variant: str | None, strict: bool,
    hide: list[str] | None = None, keep: list[str] | None = None, say: Say = logger.info,
) -> tuple[Method, Maker]:  # fmt: skip
    """The loaded method with its variant (None: the first one), and what its results state. ``strict``: with STRICT.

    ``hide`` and ``keep`` replace the variant's own keywords, if the method can select attributes. ``say`` is
    `method_files.resources`'s. Raises ParameterError
    for an unknown variant or keyword, and CheckpointError when a file is missing.
    """
    determinism.declare(parameters.compute.deterministic)
    cls = discovery.load("methods", name)
    if name not in parameters.methods:
        raise ParameterError(f"params.yaml has no block methods.{name} at scale {parameters.scale}.")
    block = parameters.methods[name]
    variant = variant or next(iter(block.variants))
    if variant not in block.variants:
        raise ParameterError(f"'{name}' has no variant '{variant}'. It has: {', '.join(block.variants)}.")
    knobs = block.variants[variant]
    if strict:
        changes = {knob: value for knob, value in STRICT.items() if knob in type(knobs).model_fields}
        knobs = type(knobs)(**{**knobs.model_dump(), **changes})
    if hide is not None or keep is not None:
        knobs = _with_keywords(name, cls, knobs, hide, keep)
    resources = method_files.resources(root, parameters, name, variant, say)
    maker = makers.of(name, variant, parameters.scale, resources)
    return cls(parameters.trained(name, variant), knobs, resources), maker


def _with_keywords(
    name: str, cls: type[Method], knobs: Any, hide: list[str] | None, keep: list[str] | None
) -> Settings:
    """The knobs of a variant with other keywords. A keyword that is named for one list leaves the default of the other.

    Raises ParameterError for a method that cannot select attributes, and for a contradiction.
    """
    if not cls.capabilities.attribute_selective:
        selective = [
            one for one in discovery.names("methods") if discovery.load("methods", one).capabilities.attribute_selective
        ]
        raise ParameterError(f"'{name}' does not let you choose what it hides. These do: {', '.join(selective)}.")
    hidden = [one for one in knobs.hide if one not in keep] if hide is None else hide
    kept = [one for one in knobs.keep if one not in hide] if keep is None else keep
    try:
        return type(knobs)(**{**knobs.model_dump(), "hide": hidden, "keep": kept})
    except ValidationError as error:
        reasons = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise ParameterError(f"--hide {','.join(hidden)} --keep {','.join(kept)}: {reasons}.") from error


def photographs_at(parameters: Parameters, path: Path, faces: str, alignment: str) -> Folder:
    """The photographs at ``path``, with the limits of params.yaml. The identities of the people are unknown."""
    if "folder" not in parameters.datasets:
        raise ParameterError(f"params.yaml has no block datasets.folder at scale {parameters.scale}.")
    limits = parameters.datasets["folder"].model_dump()
    changes = {"path": str(path), "faces": faces, "alignment": alignment, "identity": "unknown"}
    return Folder(Folder.Params(**{**limits, **changes}))


def judge_threshold(root: Path, parameters: Parameters) -> Threshold:
    """The threshold of the judge, with the calibration people of this repository where they were measured."""
    dataset, split = parameters.matrix.train_on, parameters.matrix.calibrate_on
    measured = Path(Paths(parameters.scale).measured_source.format(dataset=dataset))
    return threshold(root / measured, dataset, split, parameters.inspection.far)


def release(
    parameters: Parameters, folder: Folder, output: Path, limit: Threshold, keep_recognisable: bool, whole: bool,
    chosen: Method, large: bool, maker: Maker,
) -> Anonymized:  # fmt: skip
    """How the faces that ``chosen`` anonymizes are released. ``limit``: with its margin.

    ``whole``: with whole photographs beside them. ``large``: with the generator's large pictures, too. Raises
    ParameterError if the method has none.
    """
    enlarge = chosen.enlarge() if large or whole else None
    if large and enlarge is None:
        raise ParameterError(
            f"{chosen.title} has no pictures of 1024 pixels here: those come from a method with the generator of "
            "the scale photo, such as falco, riddle and lreorg. Leave --large out."
        )
    judge = Inspector(parameters.inspection)
    unfinished = output / placing.UNFINISHED
    photographs = WholePhotographs(folder, unfinished, judge, limit, keep_recognisable) if whole else None
    return Anonymized(
        unfinished,
        judge,
        limit,
        keep_recognisable,
        photographs,
        enlarge,
        large,
        maker,
        bool(chosen.capabilities.keys),
    )


def release_recovered(
    root: Path, parameters: Parameters, folder: Folder, output: Path, originals: Path | None
) -> Recovered:
    """How recovered faces are released. ``folder``: the anonymized pictures; ``originals``: the photographs before."""
    faces = {}
    if originals is not None:
        source = photographs_at(parameters, originals, faces="all", alignment="ffhq")
        names = _names_when_written(Path(folder.params.path))
        known = originals_of(source, parameters.image.size, set(names.values()))
        faces = {stem: known[name] for stem, name in names.items() if name in known}
        if not faces:
            raise MasqueradeError(
                f"{originals} holds no original of these pictures. Name the folder that was anonymized."
            )
    return Recovered(
        output / placing.UNFINISHED, Inspector(parameters.inspection), judge_threshold(root, parameters), faces
    )


def _names_when_written(pictures: Path) -> dict[str, str]:
    """Name of an anonymized picture -> the name that it was written with, both without an ending."""
    folder, names = folder_of(pictures), {}
    written = reports.Written(reports.read(folder / REPORT))
    for path in files_below(pictures):
        with suppress(PictureError):  # the report of the recovery has the reason
            row = written.row(path.relative_to(folder).as_posix())
            names[path.stem] = Path(row["output"]).stem if row else path.stem
    return names


def facts_of(folder: Folder, maker: Maker, key: PersonalKey, no_salt: bool) -> Callable[[Row], Row]:
    """Finds salt and check of an anonymized picture: in its PNG, or in the report beside it.

    ``no_salt``: a picture without a known salt was anonymized without one. Raises PictureError if anything else than
    ``maker`` or ``key`` made the picture, and if its salt is lost.
    """
    written = reports.Written(reports.read(folder_of(Path(folder.params.path)) / REPORT))
    unsalted = not any(row.get(salts.SALT) for row in written)

    def facts(row: Row) -> Row:
        texts = folder.texts(row["file_id"])
        listed = None if salts.states(texts) else written.row(row["file"])
        stated = salts.stated(texts) if listed is None else listed
        maker.check(stated.get(makers.MAKER, ""))
        without = salts.states(texts) or (listed is not None and unsalted) or no_salt
        salt, check = stated.get(salts.SALT, ""), stated.get(salts.CHECK, "")
        salts.check_known(salt, without)
        key.verify(salt, check)
        return {salts.SALT: salt, salts.CHECK: check}

    return facts


def ours(file: str) -> bool:
    """Whether a file beside anonymized faces is none of them: the report, a whole photograph or a large picture."""
    return file == REPORT or file.startswith((f"{PHOTOGRAPHS}/", f"{LARGE}/"))


def process(
    source: Folder, output: Path, size: int, work: Callable[[FaceArchive, Path], None], whole: bool,
    progress: Callable[[int], None], release: Anonymized | Recovered, facts: Callable[[Row], Row] | None = None,
    ours: Callable[[str], bool] = REPORT.__eq__, kept: Sequence[Row] = (),
) -> tuple[list[Row], dict]:  # fmt: skip
    """Process the photographs in parts, and release the faces of each part before the next files are read.

    ``work`` reads an archive of aligned faces and writes the archive of their results. ``whole``: all faces are one
    part, for a method that must see them together. ``progress`` is called with the number of faces and refused files
    that were read. ``facts`` gives the salt and the check of a face from its row. ``ours``: whether a file in the
    folder is none of the pictures, but written by this program. ``kept``: rows of an earlier run, whose files are left
    out. Returns the rows of the report and the statement of the method ({} if it makes none). Raises MasqueradeError
    when the folder has no file, and when a disk is full.
    """
    source.left_out = {row["file"] for row in kept}
    records = (record for record in source.records(size, seed=0, workers=1) if not ours(record.row["file"]))
    report, statement = Report(output / REPORT, release.columns), {}
    if kept:
        report.begin(kept)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place, placing.unfinished_in(output) as unfinished:
        originals, results = Path(place, "originals.zip"), Path(place, "results.zip")
        for part in _parts(records, whole):
            clear = {}
            with placing.naming_a_full_disk(Path(tempfile.gettempdir()), "TMPDIR names another folder."):
                with ArchiveWriter(originals) as out:
                    for record in part:
                        clear[record.row["id"]] = [record.detailed, *record.others]
                        out.add(*_with_facts(record, facts))
                        progress(len(report.rows) + len(out.rows))
                work(FaceArchive(originals), results)
            result = FaceArchive(results)
            with placing.naming_a_full_disk(output, "`anonymize --continue` goes on."):
                rows = release.publish(FaceArchive(originals), result, clear)
                report.add(rows)  # before the pictures appear: none is without its row, however this process ends
                placing.place(rows, unfinished, output)
            statement = result.facts.get("statement") or statement
    if not report.rows:
        raise MasqueradeError(f"There is no file in {source.params.path}. Name a folder with pictures.")
    return report.rows, statement


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
