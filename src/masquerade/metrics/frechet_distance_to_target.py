"""How far the anonymized pictures are from pictures of high quality as two clouds of features."""

import math

import numpy as np

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import judges_with
from masquerade.metrics.frechet_distance import frechet


class FrechetDistanceToTarget(Metric):
    """Frechet distance of the features of the anonymized faces and of the originals of another set, at least 0.

    The target is the set that everything learns from (``matrix.train_on``, its validation and test pictures), as
    CelebA-HQ is in the paper. Called FD-<network>, FID only where the network is InceptionV3; few faces bias it
    upwards, so that values compare only at equal numbers. Nothing where no target was measured.
    Reference: Barattin et al. 2023 (FALCO), section 4.2.1, FID (C-HQ) of Table 2; Heusel et al. 2017, Eq. 6.
    """

    title = "Frechet distance to the high-quality set"
    direction = "lower"
    unit = "squared distance of features"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        if evidence.target is None:
            return {}
        judges = [judge for judge in judges_with(evidence, "features") if f"{judge}.features" in evidence.target]
        return {judge: _judged(evidence, f"{judge}.features") for judge in judges}


def _judged(evidence: Evidence, column: str) -> Value:
    derived, target = (_seen(stack(frame[column])) for frame in (evidence.derived, evidence.target))
    of = len(evidence.derived)
    if min(len(derived), len(target)) < 2:
        return Value(math.nan, len(derived), of, note="a covariance needs two faces")
    return Value(frechet(derived, target), len(derived), of, note=f"from {len(derived)} faces to {len(target)}")


def _seen(features: np.ndarray) -> np.ndarray:
    return features[np.isfinite(features).all(axis=1)]
