"""Writes a whole photograph with every face replaced in place, or refuses it with the reason.

The finished file is decoded and searched again before it appears: whatever a reader of the file sees was judged.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from masquerade.core.errors import PictureError
from masquerade.core.images import OK
from masquerade.faces import DETAIL
from masquerade.faces.folder import TURNS, Folder
from masquerade.faces.photographs import alignment, composition, decoding
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import Replacement
from masquerade.pipeline import inspection
from masquerade.pipeline.inspection import Inspector, Threshold
from masquerade.pipeline.outputs import Output

FOLDER = "photographs"  # below the folder of the results
QUALITY = 95  # of a JPEG; Pillow's documentation advises against more
SECOND_LOOK = 2  # the finished photograph is searched at twice `detection_side`, for smaller faces
SAME_CROP = 3.0  # grey levels between two crops of one square, one of them from a photograph lying on its side


@dataclass(frozen=True)
class Outcome:
    """``name``: of the written file, or '' with the ``reason``. ``distance``: the least to an original, or NaN."""

    name: str
    reason: str = ""
    distance: float = float("nan")


class WholePhotographs:
    """Puts the results into the photographs of ``source`` and writes them to ``output``."""

    def __init__(self, source: Folder, output: Output, judge: Inspector, threshold: Threshold, keep_recognisable: bool):
        self.source, self._output = source, output
        self._judge, self._threshold, self._keep_recognisable = judge, threshold, keep_recognisable

    def write(
        self, rows: Sequence[Mapping], originals: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray],
        known: np.ndarray,
    ) -> Outcome:  # fmt: skip
        """Write one photograph. ``rows``: those of all its faces, with their final status.

        ``originals`` and ``results``: id -> crop before and after, uint8 (S, S, 3). ``known``: what the judge sees in
        the original faces, (N, 128).
        """
        name = rows[0]["file_id"]
        suffix = ".jpg" if Path(rows[0]["file"]).suffix.lower() in (".jpg", ".jpeg") else ".png"
        file = f"{FOLDER}/{name}{suffix}"
        self._output.remove(file)  # a file of an earlier run would look like a result of this one
        if any(row["status"] != OK for row in rows):
            return Outcome("", "not every face of it could be replaced")
        squares = [Square(np.array(row["square"][:2]), np.array(row["square"][2:])) for row in rows]
        faces = [
            Replacement(face, _landmarks(row, face, originals[row["id"]].shape[0]), results[row["id"]])
            for face, row in zip(squares, rows, strict=True)
        ]
        try:
            photograph = self.source.photograph(name)
            if any(_changed(photograph, face, originals[row["id"]]) for face, row in zip(faces, rows, strict=True)):
                return Outcome("", "the file changed while it was read")
            finished = composition.composed(photograph, faces)
            content = encoded(finished.picture, suffix)
            distance = self._least_distance(
                decoding.decode(io.BytesIO(content), np.inf), finished.replaced, squares, known
            )
        except PictureError as error:
            return Outcome("", str(error))
        if self._threshold.recognises(distance) and not self._keep_recognisable:
            return Outcome("", inspection.RECOGNISED, distance)
        self._output.write(file, content)
        return Outcome(file, "", distance)

    def _least_distance(
        self, finished: np.ndarray, replaced: np.ndarray, squares: Sequence[Square], known: np.ndarray
    ) -> float:
        """The least distance of a face in the finished photograph to one of the originals.

        Its faces are those at the known places, and those that HOG finds. Raises PictureError if HOG or MTCNN, which
        also detects faces that lean or look aside, finds one where ``replaced``, bool (H, W), is false.
        """
        params = self.source.params
        for box in self._judge.faces(finished, SECOND_LOOK * params.detection_side):
            if not _at(replaced, box.reshape(2, 2).mean(axis=0)):
                raise PictureError(inspection.LEFT)
        crops = [alignment.crop(finished, face, DETAIL) for face in squares]
        for quarters in TURNS if params.turn else TURNS[:1]:
            turned = np.ascontiguousarray(np.rot90(finished, quarters))
            side = params.detection_side * (1 if quarters else SECOND_LOOK)
            for box in alignment.detect(turned, side, params.detection_score):
                centre = Square(box.reshape(2, 2).mean(axis=0), np.array([1.0, 0.0]))
                if not _at(replaced, centre.turned_back(quarters, finished.shape).centre):
                    raise PictureError(inspection.LEFT)
                face = alignment.square(alignment.landmarks(turned, box))
                if face.side > 1:  # also false for NaN, which equal landmarks give
                    crops.append(alignment.crop(turned, face, DETAIL))
        seen = self._judge.look(inspection.mirrored(crops)).embeddings
        return float(inspection.distances(seen[:, None], known[None]).min())


def _landmarks(row: Mapping, face: Square, size: int) -> np.ndarray:
    """The 68 points of the old face in pixels of the photograph, (68, 2). ``size``: of its crop."""
    return alignment.out_of_crop(np.reshape(row["landmarks"], (68, 2)).astype(np.float64), face, size)


def _at(mask: np.ndarray, point: np.ndarray) -> bool:
    """The value of a mask (H, W) at a point (x, y); False outside of it."""
    x, y = np.rint(point).astype(int)
    return bool(0 <= y < mask.shape[0] and 0 <= x < mask.shape[1] and mask[y, x])


def encoded(picture: np.ndarray, suffix: str) -> bytes:
    """A file of uint8 (H, W, 3): JPEG for ``.jpg``, otherwise PNG. It holds pixels and no metadata of any file."""
    buffer = io.BytesIO()
    if suffix == ".jpg":
        Image.fromarray(picture).save(buffer, "JPEG", quality=QUALITY)
    else:
        Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def _changed(photograph: np.ndarray, face: Replacement, crop: np.ndarray) -> bool:
    """Whether the place no longer shows the face that was anonymized: the file is another one by now.

    ``crop``: that face before. Its neighbours are hidden in it.
    """
    size = crop.shape[0]
    shown = composition.face_mask(alignment.into_crop(face.landmarks, face.square, size), crop.shape)
    again = alignment.crop(photograph, face.square, size)
    return bool(np.abs(again.astype(int) - crop)[shown].mean() > SAME_CROP)
