"""Intervals of differences of shares of the same people, where a bootstrap of few people is too narrow."""

from collections.abc import Sequence

import numpy as np

from masquerade.core.statistics import combine_intervals, correlate_draws, is_extreme


def combine_shares(
    values: np.ndarray, coefficients: np.ndarray, draws: np.ndarray, people: Sequence[int], covered: float
) -> tuple[float, float]:
    """The interval of sum_i c_i p_i that covers a share ``covered``, from the shares p (K,), their ``values``.

    For two shares of the same people it is Newcombe's hybrid score for paired shares (1998, method 10): each share has
    Wilson's score interval, and their correlation is kept from 1 (`limit_correlations`). ``draws``: (K, B), the shares
    in the same bootstrap samples of the people. ``people``: how many are behind each share, (K,).
    """
    sizes = np.array([count_effective(*each) for each in zip(values, draws, people, strict=True)])
    intervals = np.array([find_score_interval(*each, covered) for each in zip(values, sizes, strict=True)])
    correlations = limit_correlations(values, sizes, correlate_draws(draws))
    return combine_intervals(values, coefficients, intervals, correlations)


def count_effective(share: float, draws: np.ndarray, people: int) -> float:
    """How many independent people would give a share the variance of its bootstrap ``draws`` (B,).

    That is p (1 - p) over the variance: fewer than ``people`` where a threshold is uncertain, too, more where a person
    has several images. A share near 0 or 1 has hardly any variance in its draws, and counts its people.
    """
    variance = float(np.nanvar(draws))
    return share * (1 - share) / variance if variance > 0 and not is_extreme(share, people) else float(people)


def find_score_interval(share: float, size: float, covered: float) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share of ``size`` independent people: all p with |share - p| within z errors.

    It has a width for shares of 0 and 1, too.
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + covered) / 2))
    middle = share + z**2 / (2 * size)
    half = z * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    low, high = (middle - half) / (1 + z**2 / size), (middle + half) / (1 + z**2 / size)
    return float(max(0.0, low)), float(min(1.0, high))


def limit_correlations(shares: np.ndarray, sizes: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """The correlations (K, K) of the answers behind ``shares`` (K,), after half a person in each cell of every table.

    Few people often answer alike by chance, and a correlation near 1 leaves the difference of their shares no error.
    So the table of two shares, which follows from them, from their correlation and from the smaller of their ``sizes``
    (K,), gets half a person in each of its four cells (Agresti and Min 2005).
    """
    deviations = np.sqrt(shares * (1 - shares))
    both = shares[:, None] * shares + correlations * deviations[:, None] * deviations
    size = np.minimum(sizes[:, None], sizes)
    both = (size * both + 0.5) / (size + 2)
    first = (size * shares[:, None] + 1) / (size + 2)
    second = (size * shares + 1) / (size + 2)
    limited = (both - first * second) / np.sqrt(first * (1 - first) * second * (1 - second))
    np.fill_diagonal(limited, 1.0)
    return limited
