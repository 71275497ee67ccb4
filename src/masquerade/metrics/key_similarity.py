"""How alike the faces are that different keys make of one face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between_versions, judges_with


class KeySimilarity(Metric):
    """Mean over faces of the mean cosine between all pairs of a face's versions, in [-1, 1].

    A face's versions are its pictures under different keys: its anonymized picture and those under further keys (the
    attempts `key`); of the attempts `wrong`, what different wrong keys bring back. Low: the keys lead to different
    people, so that one version tells little of another. Nothing where no face has two versions.
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (second term) and section 4.4.
    """

    title = "similarity between keys"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge) for judge in judges_with(evidence, "embedding")}
