"""Distance between the detector's boxes of each original and its anonymized face."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, to_papers_size


class BoxDistance(Metric):
    """Mean over faces and the four edges of |b(X) - b(X')|, at least 0; lower is better.

    b: (N, 4), left, top, right and bottom. The unit is pixels of a 256-pixel picture, as in the papers, at any size of
    the judged pictures. Only faces that are detected in both pictures count; ``over`` is their number.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 2 ("L1 distance of the four coordinates"); Cao et al. 2021,
    section 5.2, Table 2 (Face).

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = [[10, 10, 50, 50]], [[12, 10, 50, 46]]
    >>> values(BoxDistance, evidence({"net.box": before}, {"net.box": after}, size=128))  # (2 + 4) / 4 * 256 / 128
    {'net': 3.0}
    """

    title = "distance of the face's box"
    direction = "lower"
    unit = "pixels of 256"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.box") for judge in judges_with(evidence, "box")}
        return {
            judge: mean(np.abs(first - second).mean(axis=1) * to_papers_size(evidence), evidence.weights)
            for judge, (first, second) in pairs.items()
        }
