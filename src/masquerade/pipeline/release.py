"""Releases results: judges each face against its original, writes what may be written, and gives the report's rows.

The result of a black-and-white photograph becomes black and white before it is judged.
Nothing is written that the judge still takes for somebody of the photograph, unless the user insists. A refused face
has no file, neither of this run nor of an earlier one.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from masquerade.core import sealing
from masquerade.core.errors import ParameterError
from masquerade.core.images import OK, REFUSED, FaceArchive, to_uint8
from masquerade.faces.folder import NO_FACE, Folder
from masquerade.faces.photographs import decoding
from masquerade.methods import Method
from masquerade.pipeline import anonymization, image_texts, inspection
from masquerade.pipeline.image_texts import PersonalKey, ProvenanceTag
from masquerade.pipeline.inspection import AttackView, Inspector, ReleaseRule, Threshold
from masquerade.pipeline.outputs import Output
from masquerade.pipeline.whole_photographs import HIDDEN, NOTHING_TO_CUT, WholePhotographs

LARGE = "large"  # the folder of large results, below that of the others
FOUND, NOT_FOUND = "found", "no face found"
YES, NO = "yes", "no"
IMPOSSIBLE = "impossible"  # no record, because the method cannot describe the face
FILE, IMAGE = "file", "image"
"""What a face was recovered from: the sealed record in its file, or its image alone."""
Crops = Mapping[str, np.ndarray]
"""id -> image, uint8 (S, S, 3)."""
Clear = Mapping[str, Sequence[np.ndarray]]
"""id -> every original face of its photograph at DETAIL pixels, its own first."""
Row = dict[str, Any]
ATTEMPTS = 2  # further results of a face that is still recognized
RECENT = 8  # large images that are kept, because drawing one takes long


class Anonymized:
    """The release of the faces that ``method`` anonymized.

    ``tag``: what made the results; it is in the report, and in the images of a method with keys. ``photographs``: also
    writes whole photographs; None: crops alone. ``personal``: seals a record of each original face into its image, with
    a method that describes faces; None: no records. ``write_large``: the images at the full size of the generator are
    written, too. Raises ParameterError if the method has none.
    """

    columns = (
        *("file", "output", "large", "status", "reason", "distance", "threshold", "recognized", "face"),
        *("salt", "check", "maker", "record"),
        *("photograph", "photograph_distance", "photograph_reason", "photograph_hidden"),
    )

    def __init__(
        self, output: Output, rule: ReleaseRule, method: Method, tag: ProvenanceTag,
        photographs: WholePhotographs | None = None, write_large: bool = False, personal: PersonalKey | None = None,
    ):  # fmt: skip
        self._output, self._rule, self._method = output, rule, method
        self._tag, self._photographs, self._write_large = str(tag), photographs, write_large
        self._texts = {image_texts.MAKER_KEYWORD: self._tag} if method.capabilities.keys else {}
        self._gray: set[str] = set()
        self._personal = personal
        enlarge = method.enlarge() if write_large or photographs else None
        if write_large and enlarge is None:
            raise ParameterError(
                f"{method.title} has no images of 1024 pixels here: those come from a method with the "
                "generator of the scale photo, such as falco, riddle and lreorg. Leave --large out."
            )
        self._large = lru_cache(RECENT)(lambda name: self._match_tone(name, enlarge(name))) if enlarge else None

    def publish(self, originals: FaceArchive, results: FaceArchive, clear: Clear) -> list[Row]:
        """Write the results that may be written."""
        self._gray |= find_gray(originals)
        before = read_faces(originals)
        after = {name: self._match_tone(name, picture) for name, picture in read_faces(results).items()}
        references = self._embed_faces({name: [before[name], *clear[name]] for name in after})
        verdicts = self._judge_results(after, references)
        for number in range(1, ATTEMPTS + 1):
            new_results = self._resample(
                [name for name in after if verdicts[name]["recognized"] == YES], originals, number
            )
            if not new_results:
                break
            after |= new_results
            verdicts |= self._judge_results(new_results, references)
        rows = []
        for source, result in zip(originals.index.to_dict("records"), results.index.to_dict("records"), strict=True):
            row = {**source, "status": result["status"], "reason": result["reason"], "output": "", "large": ""}
            if result["status"] == OK:
                row |= verdicts[source["id"]] | {"maker": self._tag}
            rows.append(row)
        records = self._seal(rows, originals, after)
        for row in rows:
            self._write(row, after, records.get(row["id"], ""))
        if self._photographs:
            for _, group in groupby(rows, key=lambda row: row["file_id"]):
                of_file = list(group)
                large = self._large or after.__getitem__
                shown = {row["id"]: large(row["id"]) for row in of_file if row["id"] in after}
                _add_photograph(of_file, self._photographs, before, shown, references)
        return rows

    def _match_tone(self, name: str, picture: np.ndarray) -> np.ndarray:
        """The image of a face, uint8 (S, S, 3), black and white if its photograph is."""
        return decoding.as_gray(picture) if name in self._gray else picture

    def _resample(self, names: Sequence[str], originals: FaceArchive, number: int) -> dict[str, np.ndarray]:
        """Other results of the faces ``names``, id -> uint8 (S, S, 3); {} if the method has none."""
        rows = originals.select()
        rows = rows[rows["id"].isin(names)]
        if rows.empty:
            return {}
        found: dict[str, np.ndarray] = {}
        faces = originals.load(rows=rows)
        for part, images in anonymization.apply_or_refuse(lambda some: self._method.resample(some, number), faces):
            if images is not None and not isinstance(images, anonymization.Refusal):  # a refusal: the result stays
                pictures = zip(part.ids, to_uint8(images), strict=True)
                found |= {name: self._match_tone(name, image) for name, image in pictures}
        if found and self._large:
            self._large.cache_clear()
        return found

    def _judge_results(self, after: Crops, references: Mapping[str, np.ndarray]) -> dict[str, Row]:
        """id -> what the report says of a result. ``references``: the embeddings of the originals."""
        shown = [[after[name], *([self._large(name)] if self._large else [])] for name in after]
        searched = iter(self._rule.judge.search([picture for several in shown for picture in several]))
        seen = {name: [next(searched) for _ in several] for name, several in zip(after, shown, strict=True)}
        return {name: self._judge_result(seen[name], references[name]) for name in after}

    def _embed_faces(self, faces: Clear) -> dict[str, np.ndarray]:
        """id -> what the judge sees in its faces, (N, 128). Faces of one photograph share images: one look each."""
        unique = {id(picture): picture for several in faces.values() for picture in several}
        seen = dict(zip(unique, self._rule.judge.embed(list(unique.values())).embeddings, strict=True))
        return {name: np.stack([seen[id(picture)] for picture in several]) for name, several in faces.items()}

    def _judge_result(self, seen: Sequence[AttackView], references: np.ndarray) -> Row:
        """``seen``: the result at one or two sizes. ``references``: the originals, (N, 128). The nearest counts."""
        views = np.concatenate([view.embeddings for view in seen])
        distance = inspection.find_least_distance(views, references)
        refusal = {}
        if any(view.another for view in seen):
            refusal = {"status": REFUSED, "reason": inspection.LEFT}
        elif self._rule.refuses(distance):
            refusal = {"status": REFUSED, "reason": inspection.RECOGNIZED}
        face = FOUND if seen[0].found else NOT_FOUND
        return {**_describe_distance(distance, self._rule.threshold), "face": face, **refusal}

    def _seal(self, rows: Sequence[Row], originals: FaceArchive, after: Crops) -> dict[str, str]:
        """id -> the sealed record of its face. A face that the method cannot describe has none."""
        names = [row["id"] for row in rows if row["status"] == OK]
        if self._personal is None or not names:
            return {}
        faces = originals.load(rows=originals.index.set_index("id", drop=False).loc[names])
        records: dict[str, str] = {}
        for part, descriptions in anonymization.apply_or_refuse(self._method.describe, faces):
            if not isinstance(descriptions, anonymization.Refusal):
                parts = zip(part.ids, self._personal.of_faces(part), descriptions, strict=True)
                records |= {name: sealing.seal(key, face, after[name], self._tag) for name, key, face in parts}
        return records

    def _write(self, row: Row, after: Crops, record: str) -> None:
        """Write the crop of one face, if it may be written, and set ``output`` and ``large``."""
        name = row["id"]
        remove_face(self._output, name)
        if row["status"] == OK:
            if self._method.capabilities.keys:
                row[image_texts.RECORD] = YES if record else IMPOSSIBLE if self._personal else NO
            keywords = {
                image_texts.SALT_KEYWORD: row.get(image_texts.SALT),
                image_texts.CHECK_KEYWORD: row.get(image_texts.CHECK),
                image_texts.RECORD_KEYWORD: record,
            }
            texts = self._texts | {keyword: text for keyword, text in keywords.items() if text}
            row["output"] = write_face(self._output, name, after[name], texts)
            if self._write_large and self._large:
                row["large"] = write_face(self._output, f"{LARGE}/{name}", self._large(name), {})


def _add_photograph(
    rows: list[Row], photographs: WholePhotographs, before: Crops, after: Crops, references: Crops
) -> None:
    """Write the photograph of the faces ``rows`` and add its outcome to each of them."""
    faces = next((references[row["id"]] for row in rows if row["id"] in references), np.empty((0, 128)))
    outcome = photographs.write(rows, before, after, faces)
    distance = f"{outcome.distance:.3f}" if np.isfinite(outcome.distance) else ""
    for row in rows:
        if outcome.name and row["status"] == REFUSED:
            row |= {"status": HIDDEN, "reason": NOTHING_TO_CUT if row["reason"] == NO_FACE else row["reason"]}
        row |= {"photograph": outcome.name, "photograph_distance": distance, "photograph_reason": outcome.reason}
        row["photograph_hidden"] = str(outcome.hidden) if outcome.name else ""


@dataclass(frozen=True)
class Original:
    """A face as it was: at the size of the results, and at DETAIL, uint8 (S, S, 3). ``side``: in the photograph."""

    picture: np.ndarray
    detailed: np.ndarray
    side: float


def find_originals(source: Folder, size: int, names: set[str]) -> dict[str, Original]:
    """Name of an anonymized face -> its original, of the faces in ``source`` whose results have these ``names``.

    A result that bears the name of a whole photograph of several people is that of the largest face.
    """
    faces: dict[str, Original] = {}
    for record in source.records(size, seed=0, workers=1):
        if record.picture is None or record.detailed is None:
            continue
        side = 2.0 * float(np.hypot(*record.row["square"][2:]))
        for name in {record.row["id"], record.row["file_id"]} & names:
            if name not in faces or faces[name].side < side:
                faces[name] = Original(record.picture, record.detailed, side)
    return faces


class Recovered:
    """The release of recovered faces. ``originals``: name of the anonymized image -> original; {} if unknown."""

    columns = (
        "file",
        "output",
        "status",
        "reason",
        "salted",
        "recovered_from",
        "distance",
        "threshold",
        "recognized",
        "psnr",
    )

    def __init__(self, output: Output, judge: Inspector, threshold: Threshold, originals: Mapping[str, Original]):
        self._output, self._judge, self._threshold, self._originals = output, judge, threshold, originals

    def publish(self, anonymized: FaceArchive, results: FaceArchive, detailed: Crops) -> list[Row]:
        """Write the recovered faces and say how near they came to the originals that are known."""
        del detailed  # of the anonymized images, which are crops already
        after, rows = read_faces(results), []
        for name in find_gray(anonymized) & after.keys():
            after[name] = decoding.as_gray(after[name])
        for source, result in zip(anonymized.index.to_dict("records"), results.index.to_dict("records"), strict=True):
            row = {**source, "status": result["status"], "reason": result["reason"], "output": ""}
            row["salted"] = YES if source.get(image_texts.SALT) else NO
            row["recovered_from"] = ""
            if result["status"] == OK:
                row["recovered_from"] = FILE if source.get(image_texts.RECORD) else IMAGE
                row["output"] = write_face(self._output, row["id"], after[row["id"]], {})
                original = self._originals.get(Path(row["file"]).stem)
                row |= self._compare(after[row["id"]], original) if original else {}
            else:
                remove_face(self._output, row["id"])
            rows.append(row)
        return rows

    def _compare(self, picture: np.ndarray, original: Original) -> Row:
        seen = self._judge.embed([picture, original.picture, original.detailed]).embeddings
        distance = inspection.find_least_distance(seen[:1], seen[1:])
        psnr = inspection.compute_psnr(picture, original.picture)
        return {**_describe_distance(distance, self._threshold), "psnr": f"{psnr:.2f}"}


def _describe_distance(distance: float, threshold: Threshold) -> Row:
    recognized = YES if threshold.recognizes(distance) else NO
    return {"distance": f"{distance:.3f}", "threshold": f"{threshold.distance:.3f}", "recognized": recognized}


def find_gray(archive: FaceArchive) -> set[str]:
    """The ids of the faces of black-and-white photographs."""
    return {row["id"] for row in archive.index.to_dict("records") if row.get("gray")}


def read_faces(archive: FaceArchive) -> dict[str, np.ndarray]:
    """The faces of an archive that are not refused, in its order: id -> uint8 (S, S, 3)."""
    rows = archive.select()
    if rows.empty:
        return {}
    return dict(zip(rows["id"], to_uint8(archive.load(rows=rows).images), strict=True))


def write_face(output: Output, name: str, picture: np.ndarray, texts: Mapping[str, str]) -> str:
    """Write one PNG, without metadata but for ``texts`` (keyword -> text). Returns the name of its file."""
    metadata, content = PngInfo(), io.BytesIO()
    for keyword, text in texts.items():
        metadata.add_text(keyword, text)
    Image.fromarray(picture).save(content, "PNG", pnginfo=metadata)
    output.write(f"{name}.png", content.getvalue())
    return f"{name}.png"


def remove_face(output: Output, name: str) -> None:
    """Remove the images of an earlier run, which would look like results of this one."""
    for file in (f"{name}.png", f"{LARGE}/{name}.png"):
        output.remove(file)
