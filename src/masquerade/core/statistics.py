"""Statistics of embeddings and features that several rooms use, and the bootstrap over people."""

import base64
from collections.abc import Callable
from typing import cast

import numpy as np

from masquerade.core import seeding

COVERED = 0.95
"""The share of the bootstrap samples that an interval covers."""


def people_weights(people: np.ndarray, draws: int) -> np.ndarray:
    """How often each picture counts in each bootstrap sample of the people, float64 (draws, N).

    ``people``: (N,), the person in each picture. In a sample, each person counts k times with all pictures, k drawn
    from the Poisson distribution with mean 1 (Hanley and MacGibbon 2006). The draws of a person follow from the name
    alone, so all sets of pictures of the same people have the same samples, and their numbers can be compared sample
    by sample.
    """
    distinct, rows = np.unique(people.astype(str), return_inverse=True)
    drawn = [seeding.generator(0, "bootstrap", person).poisson(1.0, draws) for person in distinct]
    return np.array(drawn, dtype=np.float64).reshape(len(distinct), draws).T[:, rows]


def weighted_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of the finite ``values`` (N,) in each sample, (draws,); NaN for a sample that counts none of them."""
    finite = np.isfinite(values)
    return weighted_ratios(np.where(finite, values, 0.0), finite, weights)


def weighted_ratios(numerators: np.ndarray, denominators: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum of ``numerators`` (N,) over that of ``denominators`` (N,) in each sample, (draws,); NaN for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights @ numerators / (weights @ denominators)


def interval(draws: np.ndarray | None) -> tuple[float, float] | None:
    """The percentile interval (Efron 1979) that covers 95 % of the finite ``draws`` (B,); None without any."""
    finite = draws[np.isfinite(draws)] if draws is not None else np.empty(0)
    if not finite.size:
        return None
    low, high = np.quantile(finite, [(1 - COVERED) / 2, (1 + COVERED) / 2])
    return float(low), float(high)


def between(embeddings: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Euclidean distances, shape (P,), of all P pairs of pictures that show different people.

    ``embeddings``: (N, D). ``names``: (N,), the person in each picture; a picture with the name '' is in no pair.
    """
    from scipy.spatial.distance import pdist

    embeddings, names = embeddings[names != ""], names[names != ""]
    first, second = np.triu_indices(len(names), 1)
    return pdist(embeddings)[names[first] != names[second]] if len(names) > 1 else np.empty(0)


def threshold_at(far: float, impostors: np.ndarray) -> float:
    """The largest distance threshold with a false-accept rate of at most ``far``.

    Two faces count as one person if their distance is below the threshold. ``impostors``: (P,), the distances of pairs
    of different people in ascending order. Returns NaN if P is too small for ``far``.
    """
    accepted = int(np.floor(far * len(impostors)))
    return float(impostors[accepted]) if accepted >= 1 else float("nan")


def encoded(draws: np.ndarray) -> str:
    """``draws`` (B,) as text: base64 of little-endian 32-bit floats. `decoded` reads it."""
    return base64.b64encode(draws.astype("<f4").tobytes()).decode()


def decoded(text: str) -> np.ndarray:
    """The draws, float64 (B,), from the text that `encoded` gives."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def frechet(first: np.ndarray, second: np.ndarray) -> float:
    """The Frechet distance of two sets of features (N, D) and (M, D), modelled as Gaussians; 0 or more.

    |m1 - m2|^2 + tr C1 + tr C2 - 2 tr (C1 C2)^(1/2), with means m and covariances C (Heusel et al. 2017, Eq. 6).
    tr (C1 C2)^(1/2) is the sum of the singular values of X Y^T / sqrt((N - 1)(M - 1)) with the centred sets X and Y,
    which is exact for singular covariances too. If N > D, the factor R of X = Q R replaces X: Q changes no singular
    value.
    """
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    n, m = len(x) - 1, len(y) - 1
    left, right = (cast("np.ndarray", np.linalg.qr(z, mode="r")) if len(z) > z.shape[1] else z for z in (x, y))
    crossed = np.linalg.svd(left @ right.T, compute_uv=False).sum() / np.sqrt(n * m)
    spreads = (x**2).sum() / n + (y**2).sum() / m
    shift = first.mean(axis=0) - second.mean(axis=0)
    return float(max(0.0, shift @ shift + spreads - 2.0 * crossed))


def frechet_draws(first: np.ndarray, second: np.ndarray, weights: np.ndarray, paired: bool) -> np.ndarray:
    """`frechet` in each bootstrap sample, (draws,): the rows of ``first`` (N, D) count ``weights`` (draws, N) times.

    ``paired``: the rows of ``second`` (N, D) count as often; else each of its two rows or more, (M, D), counts once in
    every sample. NaN for a sample with fewer than two pictures. The features are multiplied once, because all that the
    distance needs follows from products of rows.
    """
    centre = np.concatenate([first, second]).mean(axis=0)  # the distance is the same, and the products keep precision
    first, second = first - centre, second - centre
    rest, squares = _resampled(first, second) if paired else _fixed(first, second), first @ first.T
    distances = []
    for weight in weights:
        used, n = np.flatnonzero(weight), float(weight.sum())
        if n < 2:
            distances.append(np.nan)
            continue
        share = weight[used] / n
        spread, square = _spread(squares[np.ix_(used, used)], share, n)
        distances.append(max(0.0, spread + square + rest(used, share, n)))
    return np.array(distances)


Rest = Callable[[np.ndarray, np.ndarray, float], float]
"""Rows of the first set in a sample, their shares, their number -> tr C2 + |m2|^2 - 2 m1 m2 - 2 tr (C1 C2)^(1/2)."""


def _resampled(first: np.ndarray, second: np.ndarray) -> Rest:
    """The rest of the distance where a sample holds the same rows of both sets."""
    crossed, squares = first @ second.T, second @ second.T

    def rest(used: np.ndarray, share: np.ndarray, n: float) -> float:
        block, root = np.ix_(used, used), np.sqrt(share * n)
        singular = np.linalg.svd(_centred(crossed[block], share) * root[:, None] * root, compute_uv=False).sum()
        spread, square = _spread(squares[block], share, n)
        return float(spread + square - 2 * share @ crossed[block] @ share - 2 * singular / (n - 1))

    return rest


def _fixed(first: np.ndarray, second: np.ndarray) -> Rest:
    """The rest of the distance where every sample holds the whole second set.

    The singular values of X Y^T are the roots of the eigenvalues of X Y^T Y X^T, which has N rows however large Y is.
    """
    mean, m = second.mean(axis=0), len(second)
    centred = second - mean
    crossed, to_mean = first @ centred.T, first @ mean
    crossed, constant = crossed @ crossed.T, (centred**2).sum() / (m - 1) + mean @ mean

    def rest(used: np.ndarray, share: np.ndarray, n: float) -> float:
        root = np.sqrt(share * n)
        eigenvalues = np.linalg.eigvalsh(_centred(crossed[np.ix_(used, used)], share) * root[:, None] * root)
        singular = np.sqrt(np.clip(eigenvalues, 0, None)).sum()
        return float(constant - 2 * share @ to_mean[used] - 2 * singular / np.sqrt((n - 1) * (m - 1)))

    return rest


def _centred(products: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The products (n, n) of two sets of rows after each row lost the mean of its set, with weights ``share`` (n,)."""
    left, right = share @ products, products @ share
    return products - left[None] - right[:, None] + left @ share


def _spread(products: np.ndarray, share: np.ndarray, count: float) -> tuple[float, float]:
    """The trace of the covariance and the squared length of the mean, from the products (n, n) of the rows."""
    square = float(share @ products @ share)
    return count / (count - 1) * (float(share @ products.diagonal()) - square), square
