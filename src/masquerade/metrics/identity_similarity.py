"""Cosine between the embeddings of each original and its anonymized (or recovered) face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import cosine, judges_with, mean, unit


class IdentitySimilarity(Metric):
    """Mean over faces of cos(e(X), e(X')) = <e(X), e(X')> / (|e(X)| |e(X')|), in [-1, 1]; 1 for the same embedding.

    e: the judge's embedding, (N, D). Lower is better for anonymized faces. Higher is better for recovered faces, and
    a table of these says so.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1; section 4.3, Table 3.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentitySimilarity, evidence({"net.embedding": [[1, 0]]}, {"net.embedding": [[3, 4]]}))  # 3 / 5
    {'net': 0.6}
    """

    title = "identity similarity"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {
            judge: mean(cosine(unit(first), unit(second)), evidence.weights) for judge, (first, second) in pairs.items()
        }
