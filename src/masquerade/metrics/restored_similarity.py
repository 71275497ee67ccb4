"""Similarity to the original of the faces that an attacker restores, to recognizers that know clear faces alone."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import restored_mean, restorers


class RestoredSimilarity(Metric):
    """Mean over probes of cos(e(R), e(X)) of the restored picture R and the original X, in [-1, 1]; lower is better.

    ``similarity``: (N,), of embeddings e (N, D). Parts: ``<recognizer>.<attacker>``, and ``<recognizer>.anonymized``
    before the restoration.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["restoring"] * 2, "recognizer": ["net"] * 2, "ssim": [0.5, 0.7]}
    >>> values(RestoredSimilarity, attacked(answers | {"similarity": [0.6, 0.8], "before_similarity": [0.1, 0.3]}))
    {'net.restoring': 0.7, 'net.anonymized': 0.2}
    """

    title = "identity similarity of restored faces"
    direction = "lower"
    unit = "cosine"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        restored, before = {}, {}
        for attack in restorers(evidence):
            restored[f"{attack.recognizer}.{attack.attacker}"] = restored_mean(attack, "similarity")
            name = f"{attack.recognizer}.anonymized"
            before[name] = before.get(name) or restored_mean(attack, "before_similarity")
        return restored | before
