"""Share of clear photographs whose person a gallery of protected pictures does not find."""

from dataclasses import replace

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import Attack, among_first, attacks, chance, untrained, worst

LEARNED = "adaptive"
"""The recognizer that learned from protected pictures. The others are as they were."""


class PoisoningProtectionRate(Metric):
    """1 - mean over clear probes of [the right person is the first one in the gallery], in [0, 1]; higher is better.

    ``rank``: (N,). The gallery has protected pictures of the person of the probe and clear pictures of all others.
    Parts: each recognizer of the service that looks the person up, and ``worst``, the minimum over them. The cloak was
    computed against ``identity``; a newer service has another one, and ``adaptive`` learned from protected pictures.
    Reference: Radiya-Dixit et al. 2022, Data Poisoning Won't Save You From Facial Recognition (arXiv:2106.14851).

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"recognizer": ["identity", "identity", "adaptive", "adaptive"], "rank": [3, 1, 1, 1]}
    >>> values(PoisoningProtectionRate, attacked({"asks": ["protecting"] * 4} | answers))
    {'worst': 0.0, 'identity': 0.5, 'adaptive': 0.0}
    """

    title = "protection by a poisoned gallery"
    direction = "higher"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values = {attack.recognizer: _missed(attack) for attack in attacks(evidence, ("protecting",))}
        return {"worst": worst(values, "lowest")} | values if values else {}


def _missed(attack: Attack) -> Value:
    found = attack.over_trainings(among_first(1))
    if not found.over:
        return found
    failed = untrained(attack) if attack.recognizer == LEARNED else ""
    draws = None if found.draws is None else 1 - found.draws
    note = "; ".join(part for part in (f"found by {chance(attack, 1)}", failed) if part)
    return replace(found, value=1 - found.value, draws=draws, note=note)
