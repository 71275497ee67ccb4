"""Writes a whole photograph with every face replaced in place, or refuses it with the reason.

A face that no method can draw is hidden: it is too small, or it leans or turns so far that only the last search finds
it. A face on which the method failed, or that is still recognized, refuses the photograph: a disc in its place would
pass a failure off as a result. The finished file is decoded and searched before it appears: whatever a reader of the
file sees was judged.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from masquerade.core.errors import PictureError
from masquerade.core.images import OK, REFUSED
from masquerade.faces import DETAIL
from masquerade.faces.folder import NO_FACE, TURNS, Folder
from masquerade.faces.photographs import alignment, composition, decoding, hiding
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import Composition, Replacement
from masquerade.pipeline import inspection
from masquerade.pipeline.inspection import ReleaseRule
from masquerade.pipeline.outputs import Output

FOLDER = "photographs"  # below the folder of the results
QUALITY = 95  # of a JPEG; Pillow's documentation advises against more
SECOND_LOOK = 2  # the finished photograph is searched at twice `detection_side`, for smaller faces
SEARCHES = 3  # of a finished photograph: what the first ones find is hidden
NOT_ALL = "not every face of it could be replaced"
HIDDEN = "hidden"
"""The status of a face without a result of its own, which a disc hides in its photograph."""
NOTHING_TO_CUT = "no face was found that can be cut out"
"""The reason in the row of a photograph in which only the last search found faces, once they are hidden."""
SAME_CROP = 3.0  # gray levels between two crops of one square, one of them from a photograph lying on its side


@dataclass(frozen=True)
class Outcome:
    """``name``: of the written file, or '' with the ``reason``. ``distance``: the least to an original, or NaN.

    ``hidden``: the number of heads that discs hide in it.
    """

    name: str
    reason: str = ""
    distance: float = float("nan")
    hidden: int = 0


class WholePhotographs:
    """Puts the results into the photographs of ``source`` and writes them to ``output``.

    ``hide``: faces that no method can draw are hidden; otherwise they refuse their photograph.
    """

    def __init__(self, source: Folder, output: Output, rule: ReleaseRule, hide: bool):
        self.source, self._output, self._rule, self._hide = source, output, rule, hide

    def write(
        self, rows: Sequence[Mapping], originals: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray],
        embeddings: np.ndarray,
    ) -> Outcome:  # fmt: skip
        """Write one photograph. ``rows``: those of all its faces, with their final status.

        ``originals`` and ``results``: id -> crop before and after, uint8 (S, S, 3). ``embeddings``: the
        embeddings of the original faces, (N, 128); N is 0 if none has a result.
        """
        name = rows[0]["file_id"]
        suffix = ".jpg" if Path(rows[0]["file"]).suffix.lower() in (".jpg", ".jpeg") else ".png"
        file = f"{FOLDER}/{name}{suffix}"
        self._output.remove(file)  # a file of an earlier run would look like a result of this one
        replaceable = [row for row in rows if row["status"] == OK]
        reason = self._find_refusal(rows)
        if reason:
            return Outcome("", reason if len(embeddings) == 0 else NOT_ALL)
        squares = [Square(np.array(row["square"][:2]), np.array(row["square"][2:])) for row in replaceable]
        faces = [
            Replacement(face, _place_landmarks(row, face, originals[row["id"]].shape[0]), results[row["id"]])
            for face, row in zip(squares, replaceable, strict=True)
        ]
        try:
            photograph = self.source.photograph(name)
            if any(
                _has_changed(photograph, face, originals[row["id"]])
                for face, row in zip(faces, replaceable, strict=True)
            ):
                return Outcome("", "the file changed while it was read")
            heads = np.reshape([row["head"] for row in rows if _has_head(row)], (-1, 3))
            content, heads, distance = self._compose_and_search(photograph, faces, heads, suffix, embeddings)
        except PictureError as error:
            return Outcome("", str(error))
        if len(embeddings) == 0 and len(heads) == 0:
            return Outcome("", NO_FACE)
        if len(embeddings) and self._rule.refuses(distance):
            return Outcome("", inspection.RECOGNIZED, distance)
        self._output.write(file, content)
        return Outcome(file, "", distance, hiding.count_heads(heads))

    def _find_refusal(self, rows: Sequence[Mapping]) -> str:
        """The reason of the first face that has no result and may not be hidden either; '' if there is none."""
        refused = [row for row in rows if row["status"] != OK]
        if self._hide:
            refused = [row for row in refused if not _has_head(row) and row["reason"] != NO_FACE]
        return refused[0]["reason"] if refused else ""

    def _compose_and_search(
        self,
        photograph: np.ndarray,
        faces: Sequence[Replacement],
        heads: np.ndarray,
        suffix: str,
        embeddings: np.ndarray,
    ) -> tuple[bytes, np.ndarray, float]:
        """The finished file, the discs in it, (N, 3), and the least distance of a face in it to one of the originals.

        What a search finds is hidden before the next one. Raises PictureError if a face is left after the last one.
        """
        for _ in range(SEARCHES if self._hide else 1):
            finished = _compose(photograph, faces, heads)
            content = encode(finished.picture, suffix)
            seen = decoding.decode(io.BytesIO(content), np.inf)
            left, crops = self._search(seen, finished.replaced, [face.square for face in faces])
            if not len(left):
                return content, heads, self._least_distance(crops, embeddings)
            heads = np.concatenate([heads, left])
        raise PictureError(inspection.LEFT)

    def _search(
        self, finished: np.ndarray, replaced: np.ndarray, squares: Sequence[Square]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The discs, (N, 3), of the faces that are left in a finished photograph; and its faces at DETAIL pixels.

        A face is left if HOG or MTCNN, which also detects faces that lean or look aside, finds it where ``replaced``,
        bool (H, W), is false. The others are those at the known places, ``squares``, and those that HOG finds.
        """
        params = self.source.params
        boxes = self._rule.judge.find_faces(finished, SECOND_LOOK * params.detection_side)
        heads = [hiding.enclose_head(box, 0, finished.shape) for box in boxes]
        left = [head for head in heads if not _read_mask(replaced, head[:2])]
        crops = [alignment.crop(finished, face, DETAIL) for face in squares]
        for quarters in TURNS if params.turn else TURNS[:1]:
            turned = np.ascontiguousarray(np.rot90(finished, quarters))
            side = params.detection_side * (1 if quarters else SECOND_LOOK)
            for box in alignment.detect(turned, side, params.detection_score):
                head = hiding.enclose_head(box, quarters, finished.shape)
                if not _read_mask(replaced, head[:2]):
                    left.append(head)
                    continue
                face = alignment.square(alignment.landmarks(turned, box))
                if face.side > 1:  # also false for NaN, which equal landmarks give
                    crops.append(alignment.crop(turned, face, DETAIL))
        return np.reshape(left, (-1, 3)), crops

    def _least_distance(self, crops: list[np.ndarray], embeddings: np.ndarray) -> float:
        """The least distance of the faces ``crops``, as they are and mirrored, to the originals; NaN without these."""
        if len(embeddings) == 0 or not crops:
            return float("nan")
        views = self._rule.judge.embed(inspection.add_mirrored(crops)).embeddings
        return inspection.find_least_distance(views, embeddings)


def _has_head(row: Mapping) -> bool:
    """Whether the row is of a face that may be hidden because it is too small."""
    return row["status"] == REFUSED and row.get("head") is not None


def _compose(photograph: np.ndarray, faces: Sequence[Replacement], heads: np.ndarray) -> Composition:
    """The photograph with the new ``faces``, and with the discs ``heads``, (N, 3), over everything.

    The discs are there before the new faces are fitted to their surroundings, so that no pixel depends on a head.
    """
    old = np.zeros(photograph.shape[:2], dtype=bool)
    for face in faces:
        old |= composition.face_mask(face.landmarks, photograph.shape)
    filled = hiding.hide(photograph, heads, old)
    finished = composition.compose(filled, faces)
    covered = hiding.draw_mask(heads, photograph.shape)[..., None]
    return Composition(np.where(covered, filled, finished.picture), finished.replaced)


def _place_landmarks(row: Mapping, face: Square, size: int) -> np.ndarray:
    """The 68 points of the old face in pixels of the photograph, (68, 2). ``size``: of its crop."""
    return alignment.out_of_crop(np.reshape(row["landmarks"], (68, 2)).astype(np.float64), face, size)


def _read_mask(mask: np.ndarray, point: np.ndarray) -> bool:
    """The value of a mask (H, W) at a point (x, y); False outside of it."""
    x, y = np.rint(point).astype(int)
    return bool(0 <= y < mask.shape[0] and 0 <= x < mask.shape[1] and mask[y, x])


def encode(picture: np.ndarray, suffix: str) -> bytes:
    """A file of uint8 (H, W, 3): JPEG for ``.jpg``, otherwise PNG. It holds pixels and no metadata of any file."""
    buffer = io.BytesIO()
    if suffix == ".jpg":
        Image.fromarray(picture).save(buffer, "JPEG", quality=QUALITY)
    else:
        Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def _has_changed(photograph: np.ndarray, face: Replacement, crop: np.ndarray) -> bool:
    """Whether the place no longer shows the face that was anonymized: the file is another one by now.

    ``crop``: that face before. Its neighbors are hidden in it.
    """
    size = crop.shape[0]
    shown = composition.face_mask(alignment.into_crop(face.landmarks, face.square, size), crop.shape)
    again = alignment.crop(photograph, face.square, size)
    return bool(np.abs(again.astype(int) - crop)[shown].mean() > SAME_CROP)
