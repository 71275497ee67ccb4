"""Share of anonymized faces that a restoration brings nearer to their original."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import Probes, noted, restorers, without
from masquerade.metrics._values import share


class RestoredNearer(Metric):
    """Mean over probes of [cos(e(R), e(X)) > cos(e(X'), e(X))], in [0, 1]; lower is better.

    X: the original, X': the anonymized picture, R: the restored one; ``similarity`` and ``before_similarity`` (N,) are
    the two cosines of embeddings e (N, D). A restoration that changes the picture at random has about 0.5 or less.
    Parts: ``<recognizer>.<attacker>``.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face; the share is ours.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["restoring"] * 2, "recognizer": ["net"] * 2, "ssim": [0.5, 0.7]}
    >>> values(RestoredNearer, attacked(answers | {"similarity": [0.6, 0.2], "before_similarity": [0.1, 0.3]}))
    {'net.restoring': 0.5}
    """

    title = "faces that a restoration brings nearer to the original"
    direction = "lower"
    unit = "share of probes"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            f"{attack.recognizer}.{attack.attacker}": noted(attack, attack.over_trainings(_nearer), "")
            for attack in restorers(evidence)
        }


def _nearer(probes: Probes) -> Value:
    after, before = probes.numbers("similarity"), probes.numbers("before_similarity")
    known = np.isfinite(after) & np.isfinite(before)
    if known.any() and (after == before)[known].all():
        return without(probes, "the attacker left every picture as it was")
    return share(np.where(known, after > before, np.nan), probes.weights)
