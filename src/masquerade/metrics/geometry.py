"""Where the face and its landmarks are in each original and in its anonymized face."""

import numpy as np

from masquerade.core.face_tables import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import average_faces, judges_with, mean, share, to_papers_size


class DetectionRate(Metric):
    """Mean over anonymized faces of [a face is detected], in [0, 1]; higher is better. Refused faces are not counted.

    ``detected``: (N,), 1 or 0.
    Reference: Wen et al. 2022 (IdentityDP), section V.B (FDR, with the HOG detector of Dalal and Triggs 2005).

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(DetectionRate, evidence({"hog.detected": [1, 1, 1, 1]}, {"hog.detected": [1, 1, 1, 0]}))
    {'hog': 0.75}
    """

    name = "detection_rate"
    title = "face detection rate"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: share(stack(evidence.derived[f"{judge}.detected"].astype("float64")), evidence.weights)
            for judge in judges_with(evidence, "detected")
        }


class BoxDistance(Metric):
    """Mean over faces and the four edges of |b(X) - b(X')|, at least 0; lower is better.

    b: (N, 4), left, top, right and bottom. The unit is pixels of a 256-pixel image, as in the papers, at any size of
    the judged images. Only faces that are detected in both images count; ``over`` is their number.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the four coordinates"); Cao et al. 2021,
    section 5.2, Table 2 (Face).

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = [[10, 10, 50, 50]], [[12, 10, 50, 46]]
    >>> values(BoxDistance, evidence({"net.box": before}, {"net.box": after}, size=128))  # (2 + 4) / 4 * 256 / 128
    {'net': 3.0}
    """

    name = "box_distance"
    title = "distance of the face's box"
    direction = "lower"
    unit = "pixels of 256"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        def measure(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            return np.abs(first - second).mean(axis=1) * to_papers_size(evidence)

        return average_faces(evidence, "box", measure)


POINTS = ("landmarks", "points", "mesh")
"""Quantities of judges that are landmarks, (N, 2 P): x0, y0, x1, ..."""
IBUG = {"eyes": slice(36, 48), "nose": slice(27, 36), "mouth": slice(48, 68)}
"""Regions of the 68 landmarks (Sagonas et al. 2013, 300 faces in-the-wild, Figure 1). The brows are left out."""


class LandmarkDistance(Metric):
    """Mean over faces and points of the Euclidean distance |p(X) - p(X')|_2, at least 0; lower is better.

    p: (N, P, 2). The unit is pixels of a 256-pixel image. Only faces that are detected in both images count.
    Parts: every judge has ``l1``, the mean over points and coordinates of |x(X) - x(X')|, which is between a half and
    0.71 of the Euclidean distance. A judge with 68 landmarks (dlib) also has ``eyes``, ``nose`` and ``mouth``.
    Reference: Cao et al. 2021, section 5.2, Table 2 ("mean distance of the total 68 keypoints"); ``l1``: Yuan et al.
    2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the 68 key points").

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(LandmarkDistance, evidence({"net.points": [[0, 0]]}, {"net.points": [[3, 4]]}, size=256))
    {'net': 5.0, 'net.l1': 3.5}
    """

    name = "landmark_distance"
    title = "distance of the landmarks"
    direction = "lower"
    unit = "pixels of 256"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for quantity in POINTS:
            for judge in judges_with(evidence, quantity):
                first, second = evidence.pair(f"{judge}.{quantity}")
                moved = (first - second).reshape(len(first), -1, 2) * to_papers_size(evidence)
                values |= {
                    f"{judge}{part}": mean(distances, evidence.weights) for part, distances in _parts(moved).items()
                }
        return values


def _parts(moved: np.ndarray) -> dict[str, np.ndarray]:
    """From the movement (N, P, 2) of P points: part -> the mean distance of each face, (N,)."""
    distances = np.linalg.norm(moved, axis=2)
    regions = IBUG if distances.shape[1] == 68 else {}
    return {
        "": distances.mean(axis=1),
        **{f".{name}": distances[:, region].mean(axis=1) for name, region in regions.items()},
        ".l1": np.abs(moved).mean(axis=(1, 2)),
    }
