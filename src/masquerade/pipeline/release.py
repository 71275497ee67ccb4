"""Releases results: judges each face against its original, writes what may be written, and gives the report's rows.

The result of a black-and-white photograph becomes black and white before it is judged.
Nothing is written that the judge still takes for somebody of the photograph, unless the user insists. A refused face
has no file, neither of this run nor of an earlier one.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from masquerade.core.images import OK, REFUSED, FaceArchive, Faces, to_uint8
from masquerade.faces.folder import NO_FACE, Folder
from masquerade.faces.photographs import decoding
from masquerade.pipeline import inspection, makers, salts
from masquerade.pipeline.inspection import Inspector, Seen, Threshold
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.outputs import Output
from masquerade.pipeline.whole_photographs import HIDDEN, NOTHING_TO_CUT, WholePhotographs

LARGE = "large"  # the folder of large results, below that of the others
FOUND, NOT_FOUND = "found", "no face found"
YES, NO = "yes", "no"
Crops = Mapping[str, np.ndarray]
"""id -> picture, uint8 (S, S, 3)."""
Clear = Mapping[str, Sequence[np.ndarray]]
"""id -> every original face of its photograph at DETAIL pixels, its own first."""
Row = dict[str, Any]
Enlarge = Callable[[str], np.ndarray]
"""id -> a large picture, uint8 (L, L, 3)."""
Otherwise = Callable[[Faces, int], np.ndarray | None]
"""`Method.resample`."""
ATTEMPTS = 2  # further results of a face that is still recognized
RECENT = 8  # large pictures that are kept and not drawn again


class Anonymized:
    """The release of anonymized faces. ``photographs``: also writes whole photographs; None: crops alone.

    ``enlarge``: id -> the result at the full size of the generator, for whole photographs; None if there is none.
    ``write_large``: these are written, too. ``maker``: what made the results; it is in the report, and with ``marked``
    in the pictures too. ``otherwise``: gives further results of a face that is still recognized.
    """

    columns = (
        *(
            "file",
            "output",
            "large",
            "status",
            "reason",
            "distance",
            "threshold",
            "recognized",
            "face",
            "salt",
            "check",
            "maker",
        ),
        *("photograph", "photograph_distance", "photograph_reason", "photograph_hidden"),
    )

    def __init__(
        self, output: Output, judge: Inspector, threshold: Threshold, keep_recognizable: bool,
        photographs: WholePhotographs | None, enlarge: Enlarge | None, write_large: bool, maker: Maker,
        marked: bool, otherwise: Otherwise,
    ):  # fmt: skip
        self._output, self._judge, self._threshold = output, judge, threshold
        self._keep_recognizable, self._photographs = keep_recognizable, photographs
        self._gray: set[str] = set()
        self._large = lru_cache(RECENT)(lambda name: self._toned(name, enlarge(name))) if enlarge else None
        self._write_large, self._maker = write_large, str(maker)
        self._texts = {makers.KEYWORD: self._maker} if marked else {}
        self._otherwise = otherwise

    def publish(self, originals: FaceArchive, results: FaceArchive, clear: Clear) -> list[Row]:
        """Write the results that may be written."""
        self._gray |= gray_ones(originals)
        before = pictures(originals)
        after = {name: self._toned(name, picture) for name, picture in pictures(results).items()}
        known = self._embeddings({name: [before[name], *clear[name]] for name in after})
        verdicts = self._verdicts(after, known)
        for number in range(1, ATTEMPTS + 1):
            others = self._others([name for name in after if verdicts[name]["recognized"] == YES], originals, number)
            if not others:
                break
            after |= others
            verdicts |= self._verdicts(others, known)
        rows = []
        for source, result in zip(originals.index.to_dict("records"), results.index.to_dict("records"), strict=True):
            row = {**source, "status": result["status"], "reason": result["reason"], "output": "", "large": ""}
            if result["status"] == OK:
                row |= verdicts[source["id"]] | {"maker": self._maker}
            rows.append(row)
            self._write(row, after)
        if self._photographs:
            for _, group in groupby(rows, key=lambda row: row["file_id"]):
                of_file = list(group)
                large = self._large or after.__getitem__
                shown = {row["id"]: large(row["id"]) for row in of_file if row["id"] in after}
                _add_photograph(of_file, self._photographs, before, shown, known)
        return rows

    def _toned(self, name: str, picture: np.ndarray) -> np.ndarray:
        """The picture of a face, uint8 (S, S, 3), black and white if its photograph is."""
        return decoding.as_gray(picture) if name in self._gray else picture

    def _others(self, names: Sequence[str], originals: FaceArchive, number: int) -> dict[str, np.ndarray]:
        """Other results of the faces ``names``, id -> uint8 (S, S, 3); {} if the method has none."""
        rows = originals.select()
        rows = rows[rows["id"].isin(names)]
        made = None if rows.empty else self._otherwise(originals.load(rows=rows), number)
        if made is None:
            return {}
        if self._large:
            self._large.cache_clear()
        return {name: self._toned(name, one) for name, one in zip(rows["id"], to_uint8(made), strict=True)}

    def _verdicts(self, after: Crops, known: Mapping[str, np.ndarray]) -> dict[str, Row]:
        """id -> what the report says of a result. ``known``: what the judge sees in the originals."""
        shown = [[after[name], *([self._large(name)] if self._large else [])] for name in after]
        searched = iter(self._judge.search([picture for several in shown for picture in several]))
        seen = {name: [next(searched) for _ in several] for name, several in zip(after, shown, strict=True)}
        return {name: self._verdict(seen[name], known[name]) for name in after}

    def _embeddings(self, faces: Clear) -> dict[str, np.ndarray]:
        """id -> what the judge sees in its faces, (N, 128). Faces of one photograph share pictures: one look each."""
        unique = {id(picture): picture for several in faces.values() for picture in several}
        seen = dict(zip(unique, self._judge.look(list(unique.values())).embeddings, strict=True))
        return {name: np.stack([seen[id(picture)] for picture in several]) for name, several in faces.items()}

    def _verdict(self, seen: Sequence[Seen], known: np.ndarray) -> Row:
        """``seen``: the result at one or two sizes. ``known``: the originals, (N, 128). The nearest pair counts."""
        views = np.concatenate([one.embeddings for one in seen])
        distance = float(inspection.distances(views[:, None], known[None]).min())
        recognized = self._threshold.recognizes(distance)
        refusal = {}
        if any(one.another for one in seen):
            refusal = {"status": REFUSED, "reason": inspection.LEFT}
        elif recognized and not self._keep_recognizable:
            refusal = {"status": REFUSED, "reason": inspection.RECOGNIZED}
        return {
            "distance": f"{distance:.3f}",
            "threshold": f"{self._threshold.distance:.3f}",
            "recognized": YES if recognized else NO,
            "face": FOUND if seen[0].found else NOT_FOUND,
            **refusal,
        }

    def _write(self, row: Row, after: Crops) -> None:
        """Write the crop of one face, if it may be written, and set ``output`` and ``large``."""
        name = row["id"]
        remove_face(self._output, name)
        if row["status"] == OK:
            keywords = {salts.KEYWORD: row.get(salts.SALT), salts.CHECK_KEYWORD: row.get(salts.CHECK)}
            texts = self._texts | {keyword: text for keyword, text in keywords.items() if text}
            row["output"] = write_face(self._output, name, after[name], texts)
            if self._write_large and self._large:
                row["large"] = write_face(self._output, f"{LARGE}/{name}", self._large(name), {})


def _add_photograph(rows: list[Row], photographs: WholePhotographs, before: Crops, after: Crops, known: Crops) -> None:
    """Write the photograph of the faces ``rows`` and add its outcome to each of them."""
    faces = next((known[row["id"]] for row in rows if row["id"] in known), np.empty((0, 128)))
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


def originals_of(source: Folder, size: int, names: set[str]) -> dict[str, Original]:
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
    """The release of recovered faces. ``originals``: name of the anonymized picture -> original; {} if unknown."""

    columns = ("file", "output", "status", "reason", "salted", "distance", "threshold", "recognized", "psnr")

    def __init__(self, output: Output, judge: Inspector, threshold: Threshold, originals: Mapping[str, Original]):
        self._output, self._judge, self._threshold, self._originals = output, judge, threshold, originals

    def publish(self, anonymized: FaceArchive, results: FaceArchive, detailed: Crops) -> list[Row]:
        """Write the recovered faces and say how near they came to the originals that are known."""
        del detailed  # of the anonymized pictures, which are crops already
        after, rows = pictures(results), []
        for name in gray_ones(anonymized) & after.keys():
            after[name] = decoding.as_gray(after[name])
        for source, result in zip(anonymized.index.to_dict("records"), results.index.to_dict("records"), strict=True):
            row = {**source, "status": result["status"], "reason": result["reason"], "output": ""}
            row["salted"] = YES if source.get(salts.SALT) else NO
            if result["status"] == OK:
                row["output"] = write_face(self._output, row["id"], after[row["id"]], {})
                original = self._originals.get(Path(row["file"]).stem)
                row |= self._nearness(after[row["id"]], original) if original else {}
            else:
                remove_face(self._output, row["id"])
            rows.append(row)
        return rows

    def _nearness(self, picture: np.ndarray, original: Original) -> Row:
        seen = self._judge.look([picture, original.picture, original.detailed]).embeddings
        distance = float(inspection.distances(seen[:1], seen[1:]).min())
        return {
            "distance": f"{distance:.3f}",
            "threshold": f"{self._threshold.distance:.3f}",
            "recognized": YES if self._threshold.recognizes(distance) else NO,
            "psnr": f"{inspection.psnr(picture, original.picture):.2f}",
        }


def gray_ones(archive: FaceArchive) -> set[str]:
    """The ids of the faces of black-and-white photographs."""
    return {row["id"] for row in archive.index.to_dict("records") if row.get("gray")}


def pictures(archive: FaceArchive) -> dict[str, np.ndarray]:
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
    """Remove the pictures of an earlier run, which would look like results of this one."""
    for file in (f"{name}.png", f"{LARGE}/{name}.png"):
        output.remove(file)
