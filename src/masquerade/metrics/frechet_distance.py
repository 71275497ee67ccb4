"""Frechet distance between the features of the originals and of the anonymized faces."""

import numpy as np

from masquerade.core.statistics import frechet, frechet_draws
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import centered, judges_with


class FrechetDistance(Metric):
    """||m1 - m2||^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), at least 0; lower is better.

    m and C: the mean and covariance of the features (N, D) of the originals (1) and of the anonymized faces (2). The
    name is FD-<network>; it is FID only if the network is InceptionV3. With fewer faces than features the covariances
    are singular and the estimate is biased upwards, so values compare only at the same number of faces.
    Reference: Heusel et al. 2017, Eq. 6; Wen et al. 2022 (IdentityDP), Table III.

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = [[0.0], [2.0]], [[3.0], [5.0]]  # means 1 and 4, the same variance
    >>> values(FrechetDistance, evidence({"net.features": before}, {"net.features": after}))
    {'net': 9.0}
    """

    title = "Frechet distance"
    direction = "lower"
    unit = "squared distance of features"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._judged(evidence, judge) for judge in judges_with(evidence, "features")}

    def _judged(self, evidence: Evidence, judge: str) -> Value:
        original, derived = evidence.pair(f"{judge}.features")
        measured = np.asarray(np.isfinite(original).all(axis=1) & np.isfinite(derived).all(axis=1))
        count = int(measured.sum())
        if count < 2:
            return Value(float("nan"), count, len(measured), note="a covariance needs two faces")
        first, second = original[measured], derived[measured]
        value, draws = frechet(first, second), frechet_draws(first, second, evidence.weights[:, measured], paired=True)
        return Value(value, count, len(measured), note=f"from {count} faces", draws=centered(draws, value))
