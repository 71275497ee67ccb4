"""How far the anonymized pictures are from the originals as two clouds of features."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with


class FrechetDistance(Metric):
    """||m1 - m2||^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)) of the features of originals and anonymized faces, at least 0.

    Called FD-<network>, and FID only where the network is InceptionV3. With fewer faces than features the covariances
    are singular and the estimate is biased upwards: values compare only at the same number of faces.
    Reference: Heusel et al. 2017, Eq. 6; Wen et al. 2022 (IdentityDP), Table III.
    """

    title = "Frechet distance"
    direction = "lower"
    unit = "squared distance of features"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._judged(evidence, judge) for judge in judges_with(evidence, "features")}

    def _judged(self, evidence: Evidence, judge: str) -> Value:
        original, derived = evidence.pair(f"{judge}.features")
        seen = np.isfinite(original).all(axis=1) & np.isfinite(derived).all(axis=1)
        count = int(seen.sum())
        if count < 2:
            return Value(float("nan"), count, len(seen), note="a covariance needs two faces")
        return Value(frechet(original[seen], derived[seen]), count, len(seen), note=f"from {count} faces")


def frechet(first: np.ndarray, second: np.ndarray) -> float:
    """The Frechet distance of two sets of features (N, D), (M, D).

    tr (C1 C2)^(1/2) is the sum of the singular values of X Y^T / sqrt((N - 1)(M - 1)), X and Y being the centred sets:
    exact also for singular covariances. Where N > D the R of X = Q R stands for X: Q changes no singular value.
    """
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    n, m = len(x) - 1, len(y) - 1
    left, right = (np.linalg.qr(z, mode="r") if len(z) > z.shape[1] else z for z in (x, y))
    crossed = np.linalg.svd(left @ right.T, compute_uv=False).sum() / np.sqrt(n * m)
    spreads = (x**2).sum() / n + (y**2).sum() / m
    shift = first.mean(axis=0) - second.mean(axis=0)
    return float(max(0.0, shift @ shift + spreads - 2.0 * crossed))
