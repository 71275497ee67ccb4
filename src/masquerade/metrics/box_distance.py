"""How far a detector's box moves when a face is anonymized."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, to_papers_size


class BoxDistance(Metric):
    """Mean over faces and the four edges of |b(X) - b(X')|, b = (left, top, right, bottom); at least 0.

    In pixels of a picture of 256 pixels, as the papers measure, whatever the size judged. Over the faces that are
    detected in both pictures, which ``over`` counts: a method that hides faces from a detector has few.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the four coordinates"); Cao et al. 2021,
    section 5.2, Table 2 (Face).
    """

    title = "distance of the face's box"
    direction = "lower"
    unit = "pixels of 256"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.box") for judge in judges_with(evidence, "box")}
        return {
            judge: mean(np.abs(first - second).mean(axis=1) * to_papers_size(evidence))
            for judge, (first, second) in pairs.items()
        }
