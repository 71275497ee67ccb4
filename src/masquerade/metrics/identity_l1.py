"""Mean absolute difference between the embeddings of each original and its anonymized face."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, unit


class IdentityL1(Metric):
    """Mean over faces and coordinates of |e(X) - e(X')|, at least 0; higher is better.

    e: the judge's embedding at unit length, (N, D). Two random directions give about 1.13 / sqrt(D): 0.050 for D = 512,
    0.100 for dlib's 128. Judges with different D do not compare. The paper says "L1 distance"; its values of 0.02 to
    0.05 can only be a mean over coordinates.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentityL1, evidence({"net.embedding": [[2, 0]]}, {"net.embedding": [[0, 5]]}))  # (|1| + |-1|) / 2
    {'net': 1.0}
    """

    title = "identity L1 distance"
    direction = "higher"
    unit = "mean over coordinates of unit embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {
            judge: mean(np.abs(unit(first) - unit(second)).mean(axis=1), evidence.weights)
            for judge, (first, second) in pairs.items()
        }
