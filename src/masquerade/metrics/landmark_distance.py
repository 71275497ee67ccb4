"""How far the landmarks of a face move when it is anonymized."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, to_papers_size

POINTS = ("landmarks", "points")
"""Quantities of judges that are landmarks: x0, y0, x1, ..."""
IBUG = {"eyes": slice(36, 48), "nose": slice(27, 36), "mouth": slice(48, 68)}
"""Regions of the 68 landmarks (Sagonas et al. 2013, 300 faces in-the-wild, Figure 1); the eyes without the brows."""


class LandmarkDistance(Metric):
    """Mean over faces and points of the Euclidean distance |p(X) - p(X')|_2; at least 0.

    In pixels of a picture of 256 pixels, over the faces that are detected in both. Of a judge with 68 landmarks
    (dlib) also the parts ``eyes``, ``nose`` and ``mouth``; of every judge ``l1``: the mean over points and coordinates
    of |x(X) - x(X')|, which is between a half and 0.71 of the Euclidean distance.
    Reference: Cao et al. 2021, section 5.2, Table 2 ("mean distance of the total 68 keypoints"); ``l1``: Yuan et al.
    2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the 68 key points").
    """

    title = "distance of the landmarks"
    direction = "lower"
    unit = "pixels of 256"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for quantity in POINTS:
            for judge in judges_with(evidence, quantity):
                first, second = evidence.pair(f"{judge}.{quantity}")
                moved = (first - second).reshape(len(first), -1, 2) * to_papers_size(evidence)
                found |= {f"{judge}{part}": mean(apart) for part, apart in _parts(moved).items()}
        return found


def _parts(moved: np.ndarray) -> dict[str, np.ndarray]:
    """Of the movement (N, P, 2) of P points: part -> the distance of each face (N,)."""
    apart = np.linalg.norm(moved, axis=2)
    regions = IBUG if apart.shape[1] == 68 else {}
    return {
        "": apart.mean(axis=1),
        **{f".{name}": apart[:, region].mean(axis=1) for name, region in regions.items()},
        ".l1": np.abs(moved).mean(axis=(1, 2)),
    }
