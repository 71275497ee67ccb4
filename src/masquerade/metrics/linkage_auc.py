"""How well two anonymized pictures of one person are told from pictures of two people."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import attacked

PICTURES = ("originals", "own_keys", "one_key", "shuffled")


class LinkageAuc(Metric):
    """P(||e(X_i) - e(X_j)|| < ||e(X_k) - e(X_l)||), in [0, 1]; lower is better, and 0.5 is chance.

    i, j: two pictures of one person. k, l: pictures of two people. e: the judge's embedding, (N, D). A tie counts half.
    That is the area under the ROC curve. The pictures X are the `originals` (what can be linked without anonymization),
    anonymized with a key each (`own_keys`), and anonymized under one key (`one_key`). `shuffled` is the control: the
    pictures under one key belong to people at random. ``over`` of ``of`` pairs of one person were measured.
    Reference: ours; no paper links pictures. Hanley and McNeil 1982 (the area). pipeline/key_attacks.py compares the
    pictures, this module reads what it found.

    >>> from dataclasses import replace
    >>> from masquerade.metrics._examples import evidence, values
    >>> linked = {name: {"value": 0.75, "over": 3, "of": 3, "draws": ""} for name in PICTURES}
    >>> faces = {"net.embedding": [[1, 0]] * 4}
    >>> values(LinkageAuc, replace(evidence(faces, faces), keys_attacked={"judge": "net", "linked": linked}))["one_key"]
    0.75
    """

    title = "pictures of one person linked"
    direction = "lower"
    unit = "share of comparisons"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        facts = evidence.keys_attacked
        if facts is None:
            return {}
        note, missing = f"distances by {facts['judge']}", "nobody has two pictures, or all show one person"
        return {name: attacked(facts["linked"][name], note, missing) for name in PICTURES}
