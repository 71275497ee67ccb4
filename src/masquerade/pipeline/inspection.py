"""The last look at a result before it is written: is the person still recognized, and which faces are in it?

The judge is dlib's recognizer, which no method trains with. Its weights come with a package, so this works offline.
It looks as an attacker does: at the result as it is written, enlarged, aligned anew, and mirrored.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np

from masquerade.core import face_tables
from masquerade.core.annotations import FACE_BOX
from masquerade.core.errors import MasqueradeError
from masquerade.core.images import to_float
from masquerade.core.statistics import between, find_threshold
from masquerade.faces import DETAIL
from masquerade.faces.photographs import alignment
from masquerade.judges.detectors import Mtcnn
from masquerade.judges.dlib_face import SAME_PERSON, DlibFace, descriptors_by_dlib
from masquerade.judges.pixels import decibels

JUDGE = "dlib_face"
RECOGNIZED = "still recognized"
LEFT = "a face is left in it that was not replaced"
FAR = 0.001
"""False-accept rate of the calibrated threshold: the share of pairs of strangers that pass for one person (ours)."""
MARGIN = 0.05
"""What is added to the threshold before a result is written, because somebody else's look may come nearer. Ours: 95 %
of 179 other looks came no nearer by more (docs/anonymize.md)."""
SMALLEST_FACE = 20
"""Side in pixels of the smallest face that MTCNN looks for in a result: facenet-pytorch's default, `min_face_size`."""
FACE_PROBABILITY = 0.95
"""Least probability that MTCNN must give to a face in a result. Ours: the faces of 13 photographs had 0.98 and more, a
hand 0.94."""
HOG_SCORE = 0.3  # the least of a face in a result; unprotected faces have about 1, and patterns rarely more than 0.2


@dataclass(frozen=True)
class Threshold:
    """Two images show one person if their distance is at most ``distance``. ``origin``: where it comes from."""

    distance: float
    origin: str

    def with_margin(self, margin: float) -> "Threshold":
        """The threshold for a release: stricter by ``margin``."""
        return Threshold(self.distance + margin, f"{self.origin}; with a margin of {margin:g}")

    def recognizes(self, distance: float) -> bool:
        """Also true for a distance that is not a number: what cannot be compared is not released."""
        return not distance > self.distance


def choose_threshold(measurements_path: Path, dataset: str, split: str, far: float) -> Threshold:
    """The larger, hence stricter, of the published threshold and the one at the rate ``far`` of a calibration.

    ``measurements_path``: the measurements of the images of ``dataset``; the calibration takes the people of
    ``split``, who have trained nothing. Without that file, or with too few people in it, the published threshold
    stands alone.
    """
    published = f"dlib's published threshold {SAME_PERSON:g} (King 2017)"
    column = f"{JUDGE}.embedding"
    try:
        table = face_tables.read(measurements_path)
    except MasqueradeError:
        return Threshold(SAME_PERSON, f"{published}; {dataset} is not measured here, so there is no calibration")
    people = table[(table["split"] == split) & (table["status"] == "ok")]
    if column not in people:
        return Threshold(SAME_PERSON, f"{published}; {JUDGE} did not measure {dataset}, so there is no calibration")
    impostors = np.sort(between(face_tables.stack(people[column]), people["identity"].to_numpy()))
    impostors = impostors[np.isfinite(impostors)]
    calibrated = find_threshold(far, impostors)
    pairs = f"{len(impostors):,} impostor pairs of {dataset} ({split})"
    if np.isnan(calibrated):
        return Threshold(SAME_PERSON, f"{published}; no calibration, because FAR {far:.1%} needs more than {pairs}")
    if calibrated > SAME_PERSON:
        return Threshold(calibrated, f"FAR {far:.1%} of {pairs}; stricter than {published}")
    return Threshold(SAME_PERSON, f"{published}; stricter than {calibrated:.3f}, which is FAR {far:.1%} of {pairs}")


@dataclass(frozen=True)
class FaceEmbeddings:
    """What the judge sees in N images: ``embeddings`` (N, 128), and ``found``, whether HOG detects a face (N,)."""

    embeddings: np.ndarray
    found: np.ndarray


@dataclass(frozen=True)
class AttackView:
    """What an attacker sees in a result: the ``embeddings`` of its face in several views, float32 (V, 128).

    ``found``: whether HOG detects a face in it as it is written. ``another``: whether HOG or MTCNN detects a face
    beside the one in the middle.
    """

    embeddings: np.ndarray
    found: bool
    another: bool


class Inspector:
    """The recognizer, and MTCNN as a second detector. Each is loaded at its first image."""

    @cached_property
    def _judge(self) -> DlibFace:
        return DlibFace(DlibFace.Params(), {})

    @cached_property
    def _mtcnn(self) -> Mtcnn:
        return Mtcnn(Mtcnn.Params(), {})

    def find_faces(self, photograph: np.ndarray, side: int) -> np.ndarray:
        """Boxes of the faces that MTCNN finds in a photograph, uint8 (H, W, 3): (N, 4) in its pixels.

        A photograph with a side longer than ``side`` pixels is reduced to it.
        """
        scale = min(side / max(photograph.shape[:2]), 1.0)
        size = [max(1, round(length * scale)) for length in photograph.shape[1::-1]]
        small = cv2.resize(photograph, size, interpolation=cv2.INTER_AREA) if scale < 1 else photograph
        return self._mtcnn.faces(small, SMALLEST_FACE, FACE_PROBABILITY) / scale

    def embed(self, pictures: list[np.ndarray]) -> FaceEmbeddings:
        """The embeddings of aligned faces, uint8 (H, W, 3) each; the sizes may differ."""
        found, chips = [], []
        for picture in pictures:
            quantities, chip = self._judge.chips(to_float(picture[None]))
            found += quantities["detected"].tolist()
            chips += chip
        return FaceEmbeddings(self._describe(chips), np.array(found, dtype=bool))

    def search(self, pictures: list[np.ndarray]) -> list[AttackView]:
        """Look at results, uint8 (S, S, 3) each, as an attacker does who wants to recognize the person.

        The views are: as it is written; at `DETAIL` pixels; detected there anew, by MTCNN if HOG finds nothing, and
        aligned by its own landmarks; and each of these mirrored.
        """
        searched = [self._views(picture) for picture in pictures]
        faces = self.embed([view for views, _ in searched for view in add_mirrored(views)])
        results, start = [], 0
        for views, another in searched:
            part = slice(start, start + 2 * len(views))
            results.append(AttackView(faces.embeddings[part], bool(faces.found[start]), another))
            start = part.stop
        return results

    def _views(self, picture: np.ndarray) -> tuple[list[np.ndarray], bool]:
        """The views of a result that are not mirrored, and whether a face lies beside the one in the middle."""
        views, size = [picture], picture.shape[0]
        if size != DETAIL:
            how = cv2.INTER_AREA if size > DETAIL else cv2.INTER_CUBIC
            views.append(cv2.resize(picture, (DETAIL, DETAIL), interpolation=how))
        detailed = views[-1]
        boxes = np.concatenate([alignment.detect(detailed, DETAIL, HOG_SCORE), self.find_faces(detailed, DETAIL)])
        centers = boxes.reshape(-1, 2, 2).mean(axis=1) / DETAIL
        middle = ((centers > FACE_BOX[:2]) & (centers < FACE_BOX[2:])).all(axis=1)
        if middle.any():
            face = alignment.square(alignment.points(detailed, boxes[middle][0]))  # those of HOG come first
            if face.side > 1:  # also false for NaN, which equal landmarks give
                views.append(alignment.crop(detailed, face, DETAIL))
        return views, not middle.all()

    def _describe(self, chips: list[np.ndarray]) -> np.ndarray:
        """By PyTorch in one batch if a method has imported it already; its import alone takes longer than 20 faces."""
        return self._judge.describe(chips) if "torch" in sys.modules else descriptors_by_dlib(chips)


@dataclass(frozen=True)
class ReleaseRule:
    """Which results may be written: those that ``judge`` does not recognize at ``threshold``.

    ``keep_recognizable``: write what is still recognized, too.
    """

    judge: Inspector
    threshold: Threshold
    keep_recognizable: bool = False

    def refuses(self, distance: float) -> bool:
        """Whether a result at this ``distance`` to the nearest original is withheld."""
        return self.threshold.recognizes(distance) and not self.keep_recognizable


def add_mirrored(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """The images, uint8 (H, W, 3) each, and then their mirror images."""
    return [*pictures, *(np.ascontiguousarray(picture[:, ::-1]) for picture in pictures)]


def find_least_distance(views: np.ndarray, references: np.ndarray) -> float:
    """The least Euclidean distance between one of the embeddings (V, D) and one of (N, D)."""
    return float(np.linalg.norm(views.astype(np.float64)[:, None] - references[None], axis=-1).min())


def compute_psnr(picture: np.ndarray, original: np.ndarray) -> float:
    """In dB, of two images uint8 (H, W, 3); infinite if they are equal (see judges/pixels.py)."""
    error = np.mean((picture.astype(np.float64) - original) ** 2, keepdims=True)
    return float(decibels(error).item())
