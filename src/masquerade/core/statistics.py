"""Statistics of embeddings and features that several rooms use, and the bootstrap over people."""

import base64
from functools import lru_cache
from typing import cast

import numpy as np

from masquerade.core import seeding

COVERED = 0.95
"""The share of the bootstrap samples that an interval covers."""


def people_of(names: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """The person in each image, text (N,), from the names (N,) and the ids of the images (N,).

    An image with the name '', whose person is not known, shows a person of its own.
    """
    names = names.astype(str)
    return np.where(names == "", pictures.astype(str), names)


def people_weights(people: np.ndarray, draws: int) -> np.ndarray:
    """How often each image counts in each bootstrap sample of the people, float64 (draws, N).

    ``people``: (N,), the person in each image. In a sample, each person counts k times with all images, k drawn
    from the Poisson distribution with mean 1 (Hanley and MacGibbon 2006). The draws of a person follow from the name
    alone, so all sets of images of the same people have the same samples, and their numbers can be compared sample
    by sample.
    """
    distinct, rows = np.unique(people.astype(str), return_inverse=True)
    counts = [_draw_counts(person, draws) for person in distinct.tolist()]
    return np.array(counts, dtype=np.float64).reshape(len(distinct), draws).T[:, rows]


@lru_cache(maxsize=4096)
def _draw_counts(person: str, draws: int) -> np.ndarray:
    """How often a person counts in each sample, (draws,). Every metric asks for it again."""
    return seeding.make_generator(0, "bootstrap", person).poisson(1.0, draws)


def count_people(weights: np.ndarray) -> int:
    """How many people are behind N images with these ``weights`` (draws, N), which `people_weights` gives.

    The images of one person have the same column. Two people have different ones: that 20 draws agree has a probability
    of 1e-10.
    """
    return len({column.tobytes() for column in weights.T})


def compute_weighted_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of the finite ``values`` (N,) in each sample, (draws,); NaN for a sample that counts none of them."""
    finite = np.isfinite(values)
    return compute_weighted_ratios(np.where(finite, values, 0.0), finite, weights)


def compute_weighted_ratios(numerators: np.ndarray, denominators: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum of ``numerators`` (N,) over that of ``denominators`` (N,) in each sample, (draws,); NaN for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights @ numerators / (weights @ denominators)


def compute_interval(
    value: float, draws: np.ndarray | None, people: int | None = None, covered: float = COVERED
) -> tuple[float, float] | None:
    """The interval of a ``value`` that covers a share ``covered`` of its bootstrap ``draws`` (B,); None without any.

    Its ends are quantiles of the finite draws, corrected for bias and skewness (BCa: Efron 1987; DiCiccio and Efron
    1996, Eq. 2.3). The bias z0 is the normal quantile of the share of draws below the value, where ties count half. The
    acceleration a is the skewness of the draws over 6: for a sum over people with Poisson weights it equals the
    jackknife's sum d^3 / (6 (sum d^2)^(3/2)), with d the deviations of the people's parts, and for other statistics it
    is an approximation. A value outside the percentile interval has more bias than such a correction can mend; its
    interval is the percentile one, extended to the value.

    ``people``: how many people are behind a value that is a share of faces, None for another number. No sample of the
    people changes a share of 0 or 1, so the interval of an extreme share (`is_extreme`) also contains that of Jeffreys
    for so many people (Brown, Cai and DasGupta 2001): from 0 to the quantile of Beta(1/2, n + 1/2), or its mirror
    image. The images of one person are not independent, so people are counted and not images.
    """
    finite = draws[np.isfinite(draws)] if draws is not None else np.empty(0)
    if not finite.size:
        return None
    low, high = _find_bca_ends(value, finite, covered)
    if people is not None and is_extreme(value, people):
        from scipy.special import betaincinv

        width = float(betaincinv(0.5, people + 0.5, (1 + covered) / 2))
        low, high = (low, max(high, width)) if value < 0.5 else (min(low, 1.0 - width), high)
    return low, high


def is_extreme(share: float, people: int) -> bool:
    """Whether a share of faces of so many ``people`` is 0 or 1, or less than half a person away from it.

    So it is with a mean of probabilities that are all tiny: it is above 0, yet no sample of the people shows how large
    it may be.
    """
    return min(share, 1 - share) * people < 0.5


TIED = 1e-4
"""Draws and a value that differ by less than this share of the draws' deviation are equal: files hold 32 bits."""


def _find_bca_ends(value: float, draws: np.ndarray, covered: float) -> tuple[float, float]:
    from scipy.special import ndtr, ndtri

    deviation = draws.std()
    ties = TIED * deviation
    bias = ndtri((np.mean(draws < value - ties) + np.mean(draws <= value + ties)) / 2)
    tails = ndtri([(1 - covered) / 2, (1 + covered) / 2])
    if abs(bias) >= tails[1]:
        low, high = np.quantile(draws, ndtr(tails))
        return float(min(low, value)), float(max(high, value))
    acceleration = np.mean(((draws - draws.mean()) / deviation) ** 3) / 6 if deviation else 0.0
    moved = bias + tails
    with np.errstate(divide="ignore"):  # where the denominator would pass 0, the end is the most extreme draw
        places = ndtr(bias + moved / np.maximum(1 - acceleration * moved, 0.0))
    low, high = np.quantile(draws, places)
    return float(low), float(high)


def combine_intervals(
    values: np.ndarray, coefficients: np.ndarray, intervals: np.ndarray, correlations: np.ndarray
) -> tuple[float, float]:
    """The interval of sum_i c_i v_i from the ``intervals`` (K, 2) of the ``values`` (K,), which may be asymmetric.

    The method of variance estimates recovery (MOVER): with e_i the distance of c_i v_i to that of its ends which makes
    it smaller, the interval begins at sum_i c_i v_i - sqrt(sum_ij r_ij s_i s_j e_i e_j), s_i being the sign of c_i; its
    upper end likewise (Zou and Donner 2008; Zou 2007 for correlated values). For the difference of two shares it is
    Newcombe's hybrid score (1998). ``correlations``: r, (K, K).
    """
    below, above = values - intervals[:, 0], intervals[:, 1] - values
    down = coefficients * np.where(coefficients > 0, below, above)
    up = coefficients * np.where(coefficients > 0, above, below)
    total = coefficients @ values
    lower, upper = (np.sqrt(max(0.0, part @ correlations @ part)) for part in (down, up))
    return float(total - lower), float(total + upper)


def correlate_draws(draws: np.ndarray) -> np.ndarray:
    """The correlations (K, K) of the rows of ``draws`` (K, B) over the samples in which all are finite.

    A row that does not vary has no correlation with others.
    """
    finite = draws[:, np.isfinite(draws).all(axis=0)]
    centered = finite - finite.mean(axis=1, keepdims=True) if finite.size else finite
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    directions = np.divide(centered, lengths, out=np.zeros_like(centered), where=lengths > 0)
    correlations = directions @ directions.T
    np.fill_diagonal(correlations, 1.0)
    return correlations


def between(embeddings: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Euclidean distances, shape (P,), of all P pairs of images that show different people.

    ``embeddings``: (N, D). ``names``: (N,), the person in each image; an image with the name '' is in no pair.
    """
    from scipy.spatial.distance import pdist

    embeddings, names = embeddings[names != ""], names[names != ""]
    first, second = np.triu_indices(len(names), 1)
    return pdist(embeddings)[names[first] != names[second]] if len(names) > 1 else np.empty(0)


def find_threshold(far: float, impostors: np.ndarray) -> float:
    """The largest distance threshold with a false-accept rate of at most ``far``.

    Two faces count as one person if their distance is below the threshold. ``impostors``: (P,), the distances of pairs
    of different people in ascending order. Returns NaN if P is too small for ``far``.
    """
    accepted = int(np.floor(far * len(impostors)))
    return float(impostors[accepted]) if accepted >= 1 else float("nan")


def encode(draws: np.ndarray) -> str:
    """``draws`` (B,) as text: base64 of little-endian 32-bit floats. `decode` reads it."""
    return base64.b64encode(draws.astype("<f4").tobytes()).decode()


def decode(text: str) -> np.ndarray:
    """The draws, float64 (B,), from the text that `encode` gives."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def compute_frechet(first: np.ndarray, second: np.ndarray) -> float:
    """The Frechet distance of two sets of features (N, D) and (M, D), modeled as Gaussians; 0 or more.

    |m1 - m2|^2 + tr C1 + tr C2 - 2 tr (C1 C2)^(1/2), with means m and covariances C (Heusel et al. 2017, Eq. 6).
    tr (C1 C2)^(1/2) is the sum of the singular values of X Y^T / sqrt((N - 1)(M - 1)) with the centered sets X and Y,
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
    """`compute_frechet` in each bootstrap sample, (draws,): rows of ``first`` (N, D) count ``weights`` (draws, N).

    ``paired``: the rows of ``second`` (N, D) count as often; else each of its two rows or more, (M, D), counts once in
    every sample. NaN for a sample with fewer than two images. The distance of the means is exact. The traces are
    taken to first order in the weights w around 1, all three, because they nearly cancel; one decomposition then serves
    all samples. With the centered sets X Y^T = U S V^T, the derivative of the sum of the singular values of
    sqrt(w) X Y^T sqrt(w') by w_i is (U S U^T)_ii / 2, and by w'_j it is (V S V^T)_jj / 2.
    """
    same = weights if paired else np.ones((len(weights), len(second)))
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    left, singular, right = _singular(x, y)
    n, m = weights.sum(axis=1), same.sum(axis=1)
    crossed = singular.sum() + (weights - 1) @ (left**2 @ singular) / 2 + (same - 1) @ (right**2 @ singular) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        shifts = ((weights @ first / n[:, None] - same @ second / m[:, None]) ** 2).sum(axis=1)
        traces = weights @ (x**2).sum(axis=1) / (n - 1) + same @ (y**2).sum(axis=1) / (m - 1)
        distances = shifts + traces - 2 * crossed / np.sqrt((n - 1) * (m - 1))
    return np.where((n < 2) | (m < 2), np.nan, distances)


def _singular(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (N, R), the singular values (R,) and V (M, R) of X Y^T.

    If rows outnumber columns, they are those of the factors R of X = Q R, times Q. LAPACK's gesvd takes a little longer
    than the usual gesdd, which does not always converge where rows occur several times.
    """
    from scipy.linalg import svd

    (q_x, r_x), (q_y, r_y) = (np.linalg.qr(z) if len(z) > z.shape[1] else (None, z) for z in (x, y))
    left, singular, right = svd(r_x @ r_y.T, full_matrices=False, lapack_driver="gesvd")
    return left if q_x is None else q_x @ left, singular, right.T if q_y is None else q_y @ right.T
