"""Frechet and kernel distances between the features of anonymized faces and of a set of originals."""

import math

import numpy as np
import pandas as pd

from masquerade.core.face_tables import stack
from masquerade.core.statistics import compute_frechet, frechet_draws
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import center, judges_with


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

    name = "frechet_distance"
    title = "Frechet distance"
    direction = "lower"
    unit = "squared distance of features"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._measure(evidence, judge) for judge in judges_with(evidence, "features")}

    def _measure(self, evidence: Evidence, judge: str) -> Value:
        original, derived = evidence.pair(f"{judge}.features")
        measured = np.asarray(np.isfinite(original).all(axis=1) & np.isfinite(derived).all(axis=1))
        first, second = original[measured], derived[measured]
        return _compare(first, second, evidence, measured, f"from {len(first)} faces")


class FrechetDistanceToTarget(Metric):
    """||m1 - m2||^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), at least 0; lower is better.

    m and C: the mean and covariance of the features of the anonymized faces (1, (N, D)) and of the target (2, (M, D)).
    The target holds images of the train split of ``matrix.train_on``, of the people that methods learn from, as
    CelebA-HQ is in the paper. None of the evaluated images is in it. The name is FD-<network>; it is FID only if the
    network is InceptionV3. Few faces bias the value upwards, so values compare only at equal numbers. There is no value
    without measurements of a target.
    Reference: Barattin et al. 2023 (FALCO), section 4.2.1, FID (C-HQ) of Table 2; Heusel et al. 2017, Eq. 6.

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces, target = {"net.features": [[0.0], [2.0]]}, {"net.features": [[3.0], [5.0]]}  # means 1 and 4
    >>> values(FrechetDistanceToTarget, evidence(faces, faces, target=target))
    {'net': 9.0}
    """

    name = "frechet_distance_to_target"
    title = "Frechet distance to the high-quality set"
    direction = "lower"
    unit = "squared distance of features"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        if evidence.target is None:
            return {}
        judges = [judge for judge in judges_with(evidence, "features") if f"{judge}.features" in evidence.target]
        return {judge: _to_target(evidence, evidence.target, f"{judge}.features") for judge in judges}


def _to_target(evidence: Evidence, targets: pd.DataFrame, column: str) -> Value:
    faces, target = stack(evidence.derived[column]), stack(targets[column])
    measured = np.asarray(np.isfinite(faces).all(axis=1))
    derived, target = faces[measured], target[np.isfinite(target).all(axis=1)]
    note = f"from {len(derived)} faces to {len(target)}"
    return _compare(derived, target, evidence, measured, note, paired=False)


def _compare(
    first: np.ndarray, second: np.ndarray, evidence: Evidence, measured: np.ndarray, note: str, paired: bool = True
) -> Value:
    """The distance of two sets of features, (N, D) and (M, D). ``measured``: which faces those of the first set are."""
    if min(len(first), len(second)) < 2:
        return Value(math.nan, len(first), len(measured), note="a covariance needs two faces")
    value = compute_frechet(first, second)
    draws = frechet_draws(first, second, evidence.weights[:, measured], paired=paired)
    return Value(value, len(first), len(measured), note=note, draws=center(draws, value))


ROWS = 512
"""Images that are compared with all others at a time."""


class KernelDistance(Metric):
    """Mean over pairs of images i, j of different people of k(x_i, x_j) + k(y_i, y_j) - 2 k(x_i, y_j); lower is better.

    That is the squared maximum mean discrepancy of the features of the originals, x (N, D), and of the anonymized
    faces, y (N, D), with the kernel k(a, b) = (<a, b> / D + 1)^3. It is unbiased: its mean is 0 if both have the same
    distribution, at any number of faces, so a value may lie below 0, and values of different numbers of faces compare.
    An image is not compared with its own anonymized face, which depends on it (Gretton et al. 2012, Eq. 4), nor with
    other images of the person, who is the unit that is drawn. In a bootstrap sample a pair counts the product of its
    people's counts. The name is KID-<network>; it is the KID only if the network is InceptionV3.
    Reference: Binkowski et al. 2018 (Demystifying MMD GANs), section 4; Gretton et al. 2012 (A Kernel Two-Sample Test).

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = [[0.0], [1.0]], [[1.0], [2.0]]  # k is 1 and 27 within a set; 1 and 8 between the sets
    >>> values(KernelDistance, evidence({"net.features": before}, {"net.features": after}))
    {'net': 19.0}
    """

    name = "kernel_distance"
    title = "kernel distance"
    direction = "lower"
    unit = "squared distance of mean embeddings by the kernel"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._measure(evidence, judge) for judge in judges_with(evidence, "features")}

    def _measure(self, evidence: Evidence, judge: str) -> Value:
        original, derived = evidence.pair(f"{judge}.features")
        measured = np.asarray(np.isfinite(original).all(axis=1) & np.isfinite(derived).all(axis=1))
        people, weights = evidence.people[measured], evidence.weights[:, measured]
        over, of = int(measured.sum()), len(measured)
        if len(set(people)) < 2:
            return Value(math.nan, 0, of, note="a pair of images needs two people")
        every = np.vstack([np.ones(over), weights])
        distances = _compute_kernel_distances(original[measured], derived[measured], people, every)
        return Value(float(distances[0]), over, of, note=f"from {over} faces", draws=distances[1:])


def _compute_kernel_distances(
    first: np.ndarray, second: np.ndarray, people: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The kernel distance of two sets of features of the same N faces, (N, D) each, in each of B samples, (B,).

    ``people``: (N,). ``weights``: how often each face counts in each sample, (B, N). NaN for a sample of one person.
    """
    sums, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for start in range(0, len(first), ROWS):
        rows = slice(start, start + ROWS)
        differences = _kernel(first[rows], first) + _kernel(second[rows], second) - 2 * _kernel(first[rows], second)
        apart = (people[rows, None] != people).astype(np.float64)  # (ROWS, N)
        sums += np.einsum("bn,bn->b", weights[:, rows] @ (differences * apart), weights)
        pairs += np.einsum("bn,bn->b", weights[:, rows] @ apart, weights)
    return np.divide(sums, pairs, out=np.full(len(weights), math.nan), where=pairs > 0)


def _kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(<a, b> / D + 1)^3 of all features a of (N, D) and b of (M, D): (N, M)."""
    return (first @ second.T / first.shape[1] + 1) ** 3
