"""By which angle the identities are apart that different keys make of one face: KFFA."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between_versions, judges_with


class KeyAngle(Metric):
    """Mean over faces of the mean angle arccos<e, e'> between all pairs of a face's versions, in degrees, 0 to 180.

    KFFA, the known factor feature angle: the known factor is the face, what varies is its key. Versions as in
    `key_similarity`; random directions are 90 degrees apart.
    Reference: Li et al. 2022, ECCV (Contrastive Learning for Diverse Disentangled Foreground Generation); Yuan et al.
    2025 (iFADIT), section 4.4, Table 4.
    """

    title = "angle between keys (KFFA)"
    direction = "higher"
    unit = "degrees"
    digits = 2

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge, _angles) for judge in judges_with(evidence, "embedding")}


def _angles(cosines: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
