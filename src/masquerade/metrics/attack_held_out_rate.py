"""Share of the attackers' own held-out faces whose person an attacker who knows the method finds first."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import among_first, chance, each_attacker


class AttackHeldOutRate(Metric):
    """Mean over probes of [the right person is the first one in the gallery], in [0, 1], on the attackers' own people.

    The same measure as `attack_rank1_rate`, on people of the attackers from whom nothing was learned. It says what a
    training achieved beside ``naive``, the better of the clear recognizers, one of which it starts from. Parts: each
    attacker that names people or links pictures. Several trainings: mean and standard deviation. The note gives chance;
    there are fewer people than tested ones, or more, so that the two rates do not compare.
    Reference: Todt et al. 2024 (SEBA, arXiv:2407.06648), who keep people of the training apart.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["naive", "naive", "adapted", "adapted"], "rank": [4, 9, 1, 2]}
    >>> values(AttackHeldOutRate, attacked(answers | {"group": ["held_out"] * 4}))
    {'naive': 0.0, 'adapted': 0.5}
    """

    title = "rank-1 rate of informed attackers on their held-out people"
    direction = "none"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return each_attacker(evidence, among_first(1), lambda attack: chance(attack, 1), group="held_out")[1]
