"""How often attackers who know the method identify the person, and how long a poisoned gallery protects."""

import operator
from dataclasses import replace

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import (
    Attack,
    Probes,
    among_first,
    attacks,
    chance,
    describe_untrained,
    each_attacker,
    of_attackers,
    strongest_with_name,
    without,
)
from masquerade.metrics._values import share_at_threshold


class AttackRank1Rate(Metric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1]; lower is better.

    ``rank``: (N,), the place of the person of each probe, from 1. The people of the gallery are sorted by the distance
    to the probe. Parts: each attacker that names people (anonymized probe, clear gallery) or links images (both
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
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, among_first(1), lambda attack: chance(attack, 1))


class AttackRank5Rate(Metric):
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
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, among_first(5), lambda attack: chance(attack, 5))


class AttackHeldOutRate(Metric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1], on the attackers' own people.

    The same measure as `attack_rank1_rate`, on people of the attackers from whom nothing was learned. It says what a
    training achieved beside ``naive``, the better of the clear recognizers, one of which it starts from. Parts: each
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
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return each_attacker(evidence, among_first(1), lambda attack: chance(attack, 1), group="held_out")[1]


class AttackTrueAcceptanceRate(Metric):
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
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, _measure_accepted, _thresholds)


def _measure_accepted(probes: Probes) -> Value:
    threshold = probes.numbers("threshold")[0]
    if np.isnan(threshold):
        return without(probes, "too few pairs of strangers among the attacker's held-out people for a threshold")
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


class PoisoningProtectionRate(Metric):
    """1 - mean over clear probes of [the right person is the first one in the gallery], in [0, 1]; higher is better.

    ``rank``: (N,). The gallery has protected images of the person of the probe and clear images of all others.
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
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values = {attack.recognizer: _measure_missed(attack) for attack in attacks(evidence, ("protecting",))}
        return {"strongest": strongest_with_name(values, "lowest")} | values if values else {}


def _measure_missed(attack: Attack) -> Value:
    found = attack.over_trainings(among_first(1))
    if not found.over:
        return found
    failed = describe_untrained(attack) if attack.recognizer == LEARNED else ""
    draws = None if found.draws is None else 1 - found.draws
    note = "; ".join(part for part in (f"found by {chance(attack, 1)}", failed) if part)
    return replace(found, value=1 - found.value, draws=draws, note=note)
