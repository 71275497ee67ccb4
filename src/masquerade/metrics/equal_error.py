"""The rate at which an attacker who knows the method rejects its targets as often as it accepts strangers."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import Probes, of_attackers, without

AT_ONCE = 2**22
"""Distances times bootstrap samples that are added up at a time: 32 MB."""
COARSE = 65
"""Thresholds at which the rates are computed first, to find where they are equal."""
Pairs = tuple[np.ndarray, np.ndarray]
"""Distances (M,), and the number of the probe of each, (M,)."""


class AttackEqualErrorRate(Metric):
    """FAR(t) at the threshold t where FAR(t) = FRR(t), in [0, 1], 0.5 by chance; higher is better for privacy.

    FRR(t): the share of the probes whose ``distance`` (N,) to their own person is at least t. FAR(t): the share of the
    ``strangers``' distances (N, S) that are below t. Both change in steps, so they are interpolated linearly between
    the distances that occur. A bootstrap sample counts the own distance and the strangers of a probe as often as its
    person, and has a threshold of its own. Parts: as of `attack_rank1_rate`; ``strongest`` is the minimum.
    Reference: Jain et al. 2004, An Introduction to Biometric Recognition; Todt et al. 2024 (SEBA, arXiv:2407.06648),
    attackers who know the method.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["naive", "naive"], "distance": [1.0, 3.0], "strangers": [[2.0], [4.0]]}
    >>> values(AttackEqualErrorRate, attack_evidence(answers))
    {'strongest': 0.5, 'strongest_naming': 0.5, 'naive': 0.5}
    """

    name = "attack_equal_error_rate"
    title = "equal error rate of informed attackers"
    direction = "higher"
    unit = "error rate"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, _equal_error, lambda _: "chance 0.500", "lowest")


def _equal_error(probes: Probes) -> Value:
    distances = probes.numbers("distance")
    counted = np.flatnonzero(np.isfinite(distances))
    if not counted.size:
        return without(probes, "no face could be measured")
    strangers = [np.asarray(part, dtype=np.float64) for part in probes.rows["strangers"].iloc[counted]]
    strangers = [part[np.isfinite(part)] for part in strangers]
    if not sum(map(len, strangers)):
        return without(probes, "the gallery has no strangers")
    every = np.vstack([np.ones(len(counted)), probes.weights[:, counted]])
    rates = equal_error_rates(distances[counted], strangers, every)
    return Value(float(rates[0]), len(counted), len(distances), draws=rates[1:])


def equal_error_rates(genuine: np.ndarray, strangers: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """The equal error rate in each of B samples, (B,), NaN for a sample without a probe.

    ``genuine``: (N,). ``strangers``: for each of N probes the distances to others. ``weights``: (B, N), how often the
    distances of each probe count. With the share G(t) of genuine distances below t, FRR = 1 - G, so the rates are equal
    where G(t) + FAR(t) = 1. Both grow with t.
    """
    others = np.concatenate(strangers)
    probes = np.repeat(np.arange(len(genuine)), [len(part) for part in strangers])
    pairs = (genuine, np.arange(len(genuine))), (others, probes)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = _near_the_crossings(np.unique(np.concatenate([genuine, others])), pairs, weights)
        most = max(1, AT_ONCE // len(steps))
        parts = [weights[start : start + most] for start in range(0, len(weights), most)]
        return np.concatenate([_crossing(*(_shares(steps, *each, part) for each in pairs)) for part in parts])


def _near_the_crossings(steps: np.ndarray, pairs: tuple[Pairs, Pairs], weights: np.ndarray) -> np.ndarray:
    """The part of the ascending ``steps`` in which the rates of every sample become equal. This saves time alone."""
    few = steps[np.linspace(0, len(steps) - 1, min(len(steps), COARSE)).astype(int)]
    total = np.zeros((len(weights), len(few)))
    for distances, probes in pairs:
        bins = np.searchsorted(few, distances)
        counts = np.bincount(probes * len(few) + bins, minlength=weights.shape[1] * len(few))
        sums = weights @ counts.reshape(-1, len(few)).cumsum(axis=1)
        total += sums / sums[:, -1:]
    places = (total < 1).sum(axis=1)
    return steps[(steps >= few[max(places.min() - 1, 0)]) & (steps <= few[places.max()])]


def _shares(steps: np.ndarray, distances: np.ndarray, probes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of ``distances`` (M,) of ``probes`` (M,) before the first of T steps and up to each, (T + 1, B)."""
    before, inside = distances < steps[0], (distances >= steps[0]) & (distances <= steps[-1])
    distances, near = distances[inside], probes[inside]
    order = np.argsort(distances)
    sums = np.empty((len(order) + 1, len(weights)))
    sums[0] = weights @ np.bincount(probes[before], minlength=weights.shape[1])
    sums[1:] = weights.T[near[order]]
    np.cumsum(sums, axis=0, out=sums)
    places = np.concatenate([[0], np.searchsorted(distances[order], steps, side="right")])
    return sums[places] / (weights @ np.bincount(probes, minlength=weights.shape[1]))


def _crossing(below: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    """The value of ``accepted`` where the sum of both, each (T + 1, B) and growing from 0 to 1, is 1; (B,)."""
    total = below + accepted
    columns = np.arange(total.shape[1])
    last = np.maximum((total < 1).sum(axis=0), 1)
    before = last - 1
    way = (1 - total[before, columns]) / (total[last, columns] - total[before, columns])
    return accepted[before, columns] + way * (accepted[last, columns] - accepted[before, columns])
