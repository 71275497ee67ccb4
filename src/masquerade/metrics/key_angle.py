"""Angle between the identities that different keys give to one face: KFFA."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between_versions, judges_with


class KeyAngle(Metric):
    """Mean over faces of the mean angle arccos<e, e'> over all pairs of a face's versions, in [0, 180] degrees.

    Higher is better. e: the judge's embedding at unit length, (N, D). Versions are those of `key_similarity`. Two
    random directions are 90 degrees apart. KFFA is the known factor feature angle: the known factor is the face, and
    its key varies.
    Reference: Li et al. 2022, ECCV (Contrastive Learning for Diverse Disentangled Foreground Generation); Yuan et al.
    2025 (iFADIT), section 4.4, Table 4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> first, second = {"net.embedding": [[1, 0]]}, {"net.embedding": [[0, 1]], "attempt": ["key"]}
    >>> values(KeyAngle, evidence(first, first, attempts=second))
    {'net': 90.0}
    """

    title = "angle between keys (KFFA)"
    direction = "higher"
    unit = "degrees"
    digits = 2

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge, _angles) for judge in judges_with(evidence, "embedding")}


def _angles(cosines: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
