"""Share of anonymized faces whose person an attacker who knows the method finds among the first five."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import among_first, chance, of_attackers


class AttackRank5Rate(Metric):
    """Mean over probes of [the right person is among the first five in the gallery], in [0, 1]; lower is better.

    ``rank``: (N,). The parts are those of `attack_rank1_rate`. The note gives chance, five over the people of the
    gallery.
    Reference: as `attack_rank1_rate`; McPherson et al. 2016 (top 1 and top 5).

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackRank5Rate, attacked(answers))
    {'worst': 1.0, 'worst_naming': 1.0, 'naive': 0.5, 'adapted': 1.0}
    """

    title = "rank-5 rate of informed attackers"
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_attackers(evidence, among_first(5), lambda attack: chance(attack, 5))
