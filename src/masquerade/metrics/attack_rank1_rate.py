"""Share of anonymized faces whose person an attacker who knows the method finds first."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import among_first, chance, of_attackers


class AttackRank1Rate(Metric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1]; lower is better.

    ``rank``: (N,), the place of the person of each probe, from 1. The people of the gallery are sorted by the distance
    to the probe. Parts: each attacker that names people (anonymized probe, clear gallery) or links pictures (both
    anonymized), and the maximum over them, ``worst`` and ``worst_naming``; controls do not count there. Several
    trainings: mean and standard deviation. The note gives chance, one over the people of the gallery. Refused faces are
    missing from ``over``.
    Reference: Newton et al. 2005 and McPherson et al. 2016 (attackers who learn the method); Phillips et al. 2011,
    Evaluation Methods in Face Recognition (closed-set identification).

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackRank1Rate, attacked(answers))
    {'worst': 0.5, 'worst_naming': 0.5, 'naive': 0.0, 'adapted': 0.5}
    """

    title = "rank-1 rate of informed attackers"
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, among_first(1), lambda attack: chance(attack, 1))
