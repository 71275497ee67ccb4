"""Cosine between the identities that different keys give to one face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between_versions, judges_with


class KeySimilarity(Metric):
    """Mean over faces of the mean cosine <e, e'> over all pairs of a face's versions, in [-1, 1]; lower is better.

    e: the judge's embedding at unit length, (N, D). The versions of a face are its pictures under different keys: its
    anonymized picture, and its pictures under further keys (the attempts `key`). A method that draws random numbers
    and takes no key has further draws in their place (the attempts `view.draw.<n>`). For the attempts `wrong` they are
    the faces that different wrong keys recover. A low value means that the keys lead to different people. The value is
    NaN if no face has two versions.
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (second term) and section 4.4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> first, second = {"net.embedding": [[1, 0]]}, {"net.embedding": [[3, 4]], "attempt": ["key"]}
    >>> values(KeySimilarity, evidence(first, first, attempts=second))  # 3 / 5
    {'net': 0.6}
    """

    title = "similarity between keys"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge) for judge in judges_with(evidence, "embedding")}
