"""Share of anonymized faces that an attacker who knows the method accepts as their person."""

import operator

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import Attack, Probes, of_attackers, without
from masquerade.metrics._values import share_at_threshold


class AttackTrueAcceptanceRate(Metric):
    """Mean over probes of [the distance to their person is below the threshold], in [0, 1]; lower is better.

    ``distance``: (N,), from the probe to the nearest picture of its person in the gallery. The threshold accepts at
    most a stated share of strangers (``informed.far``), under the same attack on people whom the attacker kept apart;
    the value is NaN if these are too few. Parts: as of `attack_rank1_rate`.
    Reference: Huang et al. 2007 (LFW, verification); Todt et al. 2024 (SEBA, arXiv:2407.06648), attackers who know the
    method.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["naive", "naive"], "distance": [0.4, 0.9], "threshold": [0.5, 0.5]}
    >>> values(AttackTrueAcceptanceRate, attacked(answers))
    {'worst': 0.5, 'worst_naming': 0.5, 'naive': 0.5}
    """

    title = "true acceptance rate of informed attackers"
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, _accepted, _thresholds)


def _accepted(probes: Probes) -> Value:
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
