"""How far apart the identities of originals and anonymized faces are, coordinate by coordinate."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, unit


class IdentityL1(Metric):
    """Mean over faces and coordinates of |e(X) - e(X')|, e of unit length; at least 0.

    Of D coordinates two random directions have about 1.13 / sqrt(D): 0.050 of 512, 0.100 of dlib's 128, so judges of
    different D do not compare. The paper says "L1 distance"; its 0.02-0.05 can only be a mean over coordinates.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1.
    """

    title = "identity L1 distance"
    direction = "higher"
    unit = "mean over coordinates of unit embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {
            judge: mean(np.abs(unit(first) - unit(second)).mean(axis=1)) for judge, (first, second) in pairs.items()
        }
