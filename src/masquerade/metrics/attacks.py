"""How often attackers who know the method identify the person, and how long a poisoned gallery protects."""

import operator
from dataclasses import replace

import numpy as np

from masquerade.core.statistics import count_people
from masquerade.metrics import Evidence, Value
from masquerade.metrics._attacks import (
    Attack,
    AttackMetric,
    Probes,
    count_first,
    describe_chance,
    describe_untrained,
    list_attacks,
    measure_attackers,
    measure_each_attacker,
    name_strongest,
    refuse,
)
from masquerade.metrics._values import share_at_threshold


class AttackRank1Rate(AttackMetric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1]; lower is better.

    ``rank``: (N,), the place of the person of each probe, from 1. The people of the gallery are sorted by the distance
    to the probe. Parts: each attacker that names people (anonymized probe, unprotected gallery) or links images (both
    anonymized), and the maximum over them, ``strongest`` and ``strongest_naming``; controls do not count there. Several
    trainings: mean and standard deviation. The note gives chance, one over the people of the gallery. Refused faces are
    missing from ``over``.
    Reference: Newton et al. 2005 and McPherson et al. 2016 (attackers who learn the method); Phillips et al. 2011,
    Evaluation Methods in Face Recognition (closed-set identification).

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackRank1Rate, attack_evidence(answers))
    {'strongest': 0.5, 'strongest_naming': 0.5, 'naive': 0.0, 'adapted': 0.5}
    """

    name = "attack_rank1_rate"
    title = "rank-1 rate of informed attackers"
    places = 1
    """How many of the first people in the gallery count."""

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return measure_attackers(
            evidence, count_first(self.places), lambda attack: describe_chance(attack, self.places)
        )


class AttackRank5Rate(AttackRank1Rate):
    """Mean over probes of [the right person is among the first five in the gallery], in [0, 1]; lower is better.

    ``rank``: (N,). The parts are those of `attack_rank1_rate`. The note gives chance, five over the people of the
    gallery.
    Reference: as `attack_rank1_rate`; McPherson et al. 2016 (top 1 and top 5).

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackRank5Rate, attack_evidence(answers))
    {'strongest': 1.0, 'strongest_naming': 1.0, 'naive': 0.5, 'adapted': 1.0}
    """

    name = "attack_rank5_rate"
    title = "rank-5 rate of informed attackers"
    places = 5


class AttackHeldOutRate(AttackMetric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1], on the attackers' own people.

    The same measure as `attack_rank1_rate`, on people of the attackers from whom nothing was learned. It says what a
    training achieved beside ``naive``, the better of the naive recognizers, one of which it starts from. Parts: each
    attacker that names people or links images. Several trainings: mean and standard deviation. The note gives chance;
    there are fewer people than tested ones, or more, so that the two rates do not compare.
    Reference: Todt et al. 2024 (SEBA, arXiv:2407.06648), who keep people of the training apart.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackHeldOutRate, attack_evidence(answers | {"group": ["held_out"] * 4}))
    {'naive': 0.0, 'adapted': 0.5}
    """

    name = "attack_held_out_rate"
    title = "rank-1 rate of informed attackers on their held-out people"
    direction = "none"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return measure_each_attacker(
            evidence, count_first(1), lambda attack: describe_chance(attack, 1), group="held_out"
        )[1]


class AttackTrueAcceptanceRate(AttackMetric):
    """Mean over probes of [the distance to their person is below the threshold], in [0, 1]; lower is better.

    ``distance``: (N,), from the probe to the nearest image of its person in the gallery. The threshold accepts at
    most a stated share of strangers (``informed.far``), under the same attack on people whom the attacker kept apart;
    the value is NaN if these are too few. Parts: as of `attack_rank1_rate`.
    Reference: Huang et al. 2007 (LFW, verification); Todt et al. 2024 (SEBA, arXiv:2407.06648), attackers who know the
    method.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["naive", "naive"], "distance": [0.4, 0.9], "threshold": [0.5, 0.5]}
    >>> values(AttackTrueAcceptanceRate, attack_evidence(answers))
    {'strongest': 0.5, 'strongest_naming': 0.5, 'naive': 0.5}
    """

    name = "attack_true_acceptance_rate"
    title = "true acceptance rate of informed attackers"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return measure_attackers(evidence, _measure_accepted, _thresholds)


def _measure_accepted(probes: Probes) -> Value:
    threshold = probes.numbers("threshold")[0]
    if np.isnan(threshold):
        return refuse(probes, "too few pairs of strangers among the attacker's held-out people for a threshold")
    return share_at_threshold(probes.numbers("distance"), probes.weights, operator.lt, threshold, "")


def _thresholds(attack: Attack) -> str:
    thresholds = [probes.numbers("threshold")[0] for probes in attack.trainings]
    low, high = f"{np.nanmin(thresholds):.3f}" if np.isfinite(thresholds).any() else "", ""
    if low and f"{np.nanmax(thresholds):.3f}" != low:
        high = f" to {np.nanmax(thresholds):.3f}"
    comparisons = attack.trainings[0].numbers("comparisons")[0]
    return f"threshold {low}{high} of {comparisons:,.0f} comparisons of the attacker's held-out people"


LEARNED = "adaptive"
"""The recognizer that learned from protected images. The others are as they were."""


class PoisoningProtectionRate(AttackMetric):
    """1 - mean over unprotected probes of [the right person is first in the gallery], in [0, 1]; higher is better.

    ``rank``: (N,). The gallery has protected images of the person of the probe and unprotected images of all others.
    Parts: each recognizer of the service that looks the person up, and ``strongest``, the minimum over them. The cloak
    was computed against ``identity``; a newer service has another one, and ``adaptive`` learned from protected
    images.
    Reference: Radiya-Dixit et al. 2022, Data Poisoning Won't Save You From Facial Recognition (arXiv:2106.14851).

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"recognizer": ["identity", "identity", "adaptive", "adaptive"], "rank": [3, 1, 1, 1]}
    >>> values(PoisoningProtectionRate, attack_evidence({"asks": ["protecting"] * 4} | answers))
    {'strongest': 0.0, 'identity': 0.5, 'adaptive': 0.0}
    """

    name = "poisoning_protection_rate"
    title = "protection by a poisoned gallery"
    direction = "higher"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values = {attack.recognizer: _measure_missed(attack) for attack in list_attacks(evidence, ("protecting",))}
        return {"strongest": name_strongest(values, "lowest")} | values if values else {}


def _measure_missed(attack: Attack) -> Value:
    rate = attack.over_trainings(count_first(1))
    if not rate.over:
        return rate
    failed = describe_untrained(attack) if attack.recognizer == LEARNED else ""
    draws = None if rate.draws is None else 1 - rate.draws
    note = "; ".join(part for part in (f"found by {describe_chance(attack, 1)}", failed) if part)
    return replace(rate, value=1 - rate.value, draws=draws, note=note)


AT_ONCE = 2**22
"""Distances times bootstrap samples that are added up at a time: 32 MB."""
COARSE = 65
"""Thresholds at which the rates are computed first, to find where they are equal."""
Pairs = tuple[np.ndarray, np.ndarray]
"""Distances (M,), and the number of the probe of each, (M,)."""


class AttackEqualErrorRate(AttackMetric):
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

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return measure_attackers(evidence, _equal_error, lambda _: "chance 0.500", "lowest")


def _equal_error(probes: Probes) -> Value:
    distances = probes.numbers("distance")
    rows = np.flatnonzero(np.isfinite(distances))
    if not rows.size:
        return refuse(probes, "no face could be measured")
    strangers = [np.asarray(part, dtype=np.float64) for part in probes.rows["strangers"].iloc[rows]]
    strangers = [part[np.isfinite(part)] for part in strangers]
    if not sum(map(len, strangers)):
        return refuse(probes, "the gallery has no strangers")
    every = np.vstack([np.ones(len(rows)), probes.weights[:, rows]])
    rates = equal_error_rates(distances[rows], strangers, every)
    people = count_people(probes.weights[:, rows])
    return Value(float(rates[0]), len(rows), len(distances), draws=rates[1:], people=people)


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
