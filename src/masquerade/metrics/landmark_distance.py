"""Distance between the landmarks of each original and its anonymized face."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, to_papers_size

POINTS = ("landmarks", "points")
"""Quantities of judges that are landmarks, (N, 2 P): x0, y0, x1, ..."""
IBUG = {"eyes": slice(36, 48), "nose": slice(27, 36), "mouth": slice(48, 68)}
"""Regions of the 68 landmarks (Sagonas et al. 2013, 300 faces in-the-wild, Figure 1). The brows are left out."""


class LandmarkDistance(Metric):
    """Mean over faces and points of the Euclidean distance |p(X) - p(X')|_2, at least 0; lower is better.

    p: (N, P, 2). The unit is pixels of a 256-pixel picture. Only faces that are detected in both pictures count.
    Parts: every judge has ``l1``, the mean over points and coordinates of |x(X) - x(X')|, which is between a half and
    0.71 of the Euclidean distance. A judge with 68 landmarks (dlib) also has ``eyes``, ``nose`` and ``mouth``.
    Reference: Cao et al. 2021, section 5.2, Table 2 ("mean distance of the total 68 keypoints"); ``l1``: Yuan et al.
    2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the 68 key points").

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(LandmarkDistance, evidence({"net.points": [[0, 0]]}, {"net.points": [[3, 4]]}, size=256))
    {'net': 5.0, 'net.l1': 3.5}
    """

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
