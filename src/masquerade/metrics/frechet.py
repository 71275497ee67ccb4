"""Frechet and kernel distances between the features of anonymized faces and of a set of originals."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from masquerade.core.face_tables import stack
from masquerade.core.statistics import compute_frechet, compute_weighted_means, frechet_draws, people_of
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
        return _compare_with_target(evidence, self._measure)

    def _measure(self, evidence: Evidence, targets: pd.DataFrame, column: str) -> Value:
        faces, target = stack(evidence.derived[column]), stack(targets[column])
        measured = np.asarray(np.isfinite(faces).all(axis=1))
        derived, target = faces[measured], target[np.isfinite(target).all(axis=1)]
        note = f"from {len(derived)} faces to {len(target)}"
        return _compare(derived, target, evidence, measured, note, paired=False)


def _compare_with_target(
    evidence: Evidence, measure: Callable[[Evidence, pd.DataFrame, str], Value]
) -> dict[str, Value]:
    """``measure(evidence, target, column)`` for each judge whose features both sets have; {} without a target."""
    if evidence.target is None:
        return {}
    judges = [judge for judge in judges_with(evidence, "features") if f"{judge}.features" in evidence.target]
    return {judge: measure(evidence, evidence.target, f"{judge}.features") for judge in judges}


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
        every = np.vstack([np.ones(over), weights])  # the value itself, then the samples
        x, y = original[measured], derived[measured]
        distances = _average_pairs(
            lambda rows: _kernel(x[rows], x) + _kernel(y[rows], y) - 2 * _kernel(x[rows], y), people, every
        )
        return Value(float(distances[0]), over, of, note=f"from {over} faces", draws=distances[1:])


def _average_pairs(compare: Callable[[slice], np.ndarray], people: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of numbers of pairs over the pairs of N images of different people, in each of B samples, (B,).

    ``compare``: some rows -> the numbers of these and all images, (rows, N). ``people``: (N,). ``weights``: how often
    each image counts in each sample, (B, N). NaN for a sample of one person.
    """
    sums, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for start in range(0, len(people), ROWS):
        rows = slice(start, start + ROWS)
        apart = (people[rows, None] != people).astype(np.float64)  # (ROWS, N)
        sums += np.einsum("bn,bn->b", weights[:, rows] @ (compare(rows) * apart), weights)
        pairs += np.einsum("bn,bn->b", weights[:, rows] @ apart, weights)
    return np.divide(sums, pairs, out=np.full(len(weights), math.nan), where=pairs > 0)


class KernelDistanceToTarget(Metric):
    """Mean of k(x_i, x_j) + mean of k(y_i, y_j) - 2 mean of k(x_i, y_j); lower is better.

    That is the squared maximum mean discrepancy of the features of the target, x (M, D), and of the anonymized faces,
    y (N, D), with the kernel of `KernelDistance`. The target is that of `FrechetDistanceToTarget`. Within a set, the
    mean is over pairs of images of different people; between the sets, which have no person in common, it is over all
    pairs. It is unbiased, so a value may lie below 0, and values of different numbers of faces compare. In a bootstrap
    sample a pair counts the product of its people's counts, and each image of the target counts once. There is no value
    without measurements of a target. The name is KID-<network>; it is the KID only if the network is InceptionV3.
    Reference: Binkowski et al. 2018 (Demystifying MMD GANs), section 4; Gretton et al. 2012, Eq. 3.

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces, target = {"net.features": [[1.0], [2.0]]}, {"net.features": [[0.0], [1.0]]}
    >>> values(KernelDistanceToTarget, evidence(faces, faces, target=target))  # 27 + 1 - 2 (1 + 1 + 8 + 27) / 4
    {'net': 9.5}
    """

    name = "kernel_distance_to_target"
    title = "kernel distance to the high-quality set"
    direction = "lower"
    unit = "squared distance of mean embeddings by the kernel"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return _compare_with_target(evidence, self._measure)

    def _measure(self, evidence: Evidence, targets: pd.DataFrame, column: str) -> Value:
        faces, target = stack(evidence.derived[column]), stack(targets[column])
        measured, known = np.asarray(np.isfinite(faces).all(axis=1)), np.asarray(np.isfinite(target).all(axis=1))
        people = evidence.people[measured]
        target_people = people_of(targets["identity"].to_numpy(), targets["id"].to_numpy())[known]
        x, y, over, of = target[known], faces[measured], int(measured.sum()), len(measured)
        if min(len(set(people)), len(set(target_people))) < 2:
            return Value(math.nan, 0, of, note="a pair of images needs two people")
        weights = np.vstack([np.ones(over), evidence.weights[:, measured]])  # the value itself, then the samples
        within_target = _average_pairs(lambda rows: _kernel(x[rows], x), target_people, np.ones((1, len(x))))
        within_faces = _average_pairs(lambda rows: _kernel(y[rows], y), people, weights)
        between = np.concatenate([_kernel(y[row : row + ROWS], x).mean(axis=1) for row in range(0, over, ROWS)])  # (N,)
        distances = within_target + within_faces - 2 * compute_weighted_means(between, weights)
        note = f"from {over} faces to {len(x)}"
        return Value(float(distances[0]), over, of, note=note, draws=distances[1:])


def _kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(<a, b> / D + 1)^3 of all features a of (N, D) and b of (M, D): (N, M)."""
    return (first @ second.T / first.shape[1] + 1) ** 3
