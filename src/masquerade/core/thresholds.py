"""Distance thresholds at a false-accept rate, and how uncertain they are: other people would give other thresholds."""

import math
from dataclasses import dataclass

import numpy as np

from masquerade.core.statistics import compute_interval, people_weights

KEPT, LEAST = 5.0, 10_000
"""Of the pairs of strangers, KEPT times the false-accept rate, and LEAST at least, are kept: the nearest ones."""
AT_ONCE = 2**18
"""Pairs times bootstrap samples that are added up at a time: 2 MB, which fit into the caches of a processor."""


@dataclass(frozen=True)
class Impostors:
    """Pairs of images that show different people, nearest first.

    ``distances``: (T,), ascending. ``first`` and ``second``: (T,), the person in each image of a pair, as places in
    ``people``: (K,), the different names in ascending order. ``images``: (K,), the number of images of each person, if
    these are the nearest of all pairs of these images; None if there are no other pairs.
    """

    distances: np.ndarray
    first: np.ndarray
    second: np.ndarray
    people: np.ndarray
    images: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The number of all pairs."""
        if self.images is None:
            return len(self.distances)
        return int(self.images.sum() ** 2 - (self.images**2).sum()) // 2

    def weigh(self, counts: np.ndarray) -> np.ndarray:
        """The weight of all pairs in each sample, (B,), where the people count ``counts`` times, (K, B)."""
        if self.images is None:
            return (counts[self.first] * counts[self.second]).sum(axis=0)
        return ((self.images @ counts) ** 2 - self.images**2 @ counts**2) / 2


def pair_strangers(embeddings: np.ndarray, names: np.ndarray, far: float) -> Impostors:
    """The nearest of all pairs of images that show different people, as many as a threshold at the rate ``far`` needs.

    ``embeddings``: (N, D); their distance is Euclidean. ``names``: (N,), the person in each image. An image without an
    embedding (NaN) or with the name '' is in no pair.
    """
    from scipy.spatial.distance import pdist

    usable = np.isfinite(embeddings).all(axis=1) & (names != "")
    people, numbers, images = np.unique(names[usable].astype(str), return_inverse=True, return_counts=True)
    distances = pdist(embeddings[usable]) if len(people) > 1 else np.empty(0)
    # pdist gives the pairs (0, 1), (0, 2), ..., (1, 2), ...: where those of each image begin
    starts = np.concatenate([[0], np.cumsum(np.arange(len(numbers) - 1, 0, -1))])
    if len(people) > 1:
        for rows in np.split(np.argsort(numbers, kind="stable"), np.cumsum(images)[:-1]):
            one, other = (rows[side] for side in np.triu_indices(len(rows), 1))
            distances[starts[one] + other - one - 1] = math.inf
    strangers = int(len(numbers) ** 2 - (images**2).sum()) // 2
    nearest = np.argsort(distances)[: min(strangers, max(LEAST, math.ceil(KEPT * far * strangers)))]
    first = np.searchsorted(starts, nearest, side="right") - 1
    second = nearest - starts[first] + first + 1
    return Impostors(distances[nearest], numbers[first], numbers[second], people, images)


def list_impostors(distances: np.ndarray, first: np.ndarray, second: np.ndarray) -> Impostors:
    """Given pairs of images of different people, such as those that LFW publishes.

    ``distances``: (P,); a pair without one (NaN) is left out. ``first`` and ``second``: (P,), the names of the people
    in each image.
    """
    order = np.argsort(distances)[: np.isfinite(distances).sum()]  # NaN comes last
    people, numbers = np.unique(np.concatenate([first[order], second[order]]).astype(str), return_inverse=True)
    return Impostors(distances[order], numbers[: len(order)], numbers[len(order) :], people)


@dataclass(frozen=True)
class ThresholdEstimate:
    """The largest distance threshold at which at most a share ``far`` of the pairs of strangers is accepted.

    Two faces count as one person if their distance is below ``distance``, which is NaN if the pairs are too few for
    ``far``. ``pairs`` of ``people`` set it. ``draws``: (draws,), the threshold in each bootstrap sample of these
    people. ``rate``: the share of the pairs that ``distance`` accepts. ``rates``: (draws,), that share in each sample.
    """

    far: float
    distance: float
    pairs: int
    people: int
    rate: float
    draws: np.ndarray
    rates: np.ndarray

    def describe(self) -> str:
        """The threshold, who set it, and the interval of its false-accept rate, for a note."""
        text = f"threshold {self.distance:.3f} at FAR {self.far:g} of {self.pairs:,} impostor pairs"
        return f"{text} of {self.people} people{describe_rate(self.rate, self.rates)}"


def describe_rate(rate: float, rates: np.ndarray) -> str:
    """The end of a note: the interval of a threshold's false-accept rate from its ``rates`` (draws,); '' for none."""
    interval = compute_interval(rate, rates)
    return "" if interval is None else f"; its rate is {interval[0]:.2g} to {interval[1]:.2g}"


def estimate_threshold(far: float, impostors: Impostors, draws: int) -> ThresholdEstimate:
    """The threshold at the rate ``far``, and in each of ``draws`` bootstrap samples of the people who set it.

    The distance is that of `find_threshold` for all pairs. In a sample each person counts k times
    (`statistics.people_weights`), and a pair of two people the product of their counts; copies of one person are no
    strangers (the bootstrap of a U-statistic: Arcones and Giné 1992). The threshold of a sample is the largest distance
    at which the pairs below it have at most a share ``far`` of the weight. A sample with too few pairs accepts none of
    them, and one that needs more of the nearest pairs than are kept has the largest of these. NaN for a sample without
    a pair.
    """
    accepted = int(np.floor(far * impostors.count))
    if accepted < 1:
        missing = np.full(draws, math.nan)
        return ThresholdEstimate(far, math.nan, impostors.count, len(impostors.people), math.nan, missing, missing)
    distance = float(impostors.distances[accepted])
    below = int(np.searchsorted(impostors.distances, distance))
    counts = people_weights(impostors.people, draws).T  # (K, draws)
    enough = 2 * accepted + 50  # pairs for nearly every sample
    step = max(1, AT_ONCE // enough)
    parts = [_find_thresholds(far, impostors, counts[:, at : at + step], below, enough) for at in range(0, draws, step)]
    thresholds, rates = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    return ThresholdEstimate(
        far, distance, impostors.count, len(impostors.people), below / impostors.count, thresholds, rates
    )


def _find_thresholds(far: float, impostors: Impostors, counts: np.ndarray, below: int, most: int) -> np.ndarray:
    """The threshold in each sample, and the share of the weight that the first ``below`` pairs have in it, (2, B).

    ``counts``: (K, B), how often each person counts. The nearest ``most`` pairs are added up, and more for the samples
    that need them.
    """
    first, second = impostors.first[:most], impostors.second[:most]
    sums = np.cumsum(counts[first] * counts[second], axis=0)  # (most, B)
    totals = impostors.weigh(counts)
    places = (sums <= far * totals).sum(axis=0)
    thresholds = impostors.distances[np.minimum(places, len(sums) - 1)]
    with np.errstate(invalid="ignore"):
        rates = (sums[below - 1] if below else np.zeros(len(totals))) / totals
    found = np.where(totals > 0, [thresholds, rates], math.nan)
    beyond = (places == len(sums)) & (totals > 0)
    if beyond.any() and most < len(impostors.distances):
        found[:, beyond] = _find_thresholds(far, impostors, counts[:, beyond], below, 4 * most)
    return found
