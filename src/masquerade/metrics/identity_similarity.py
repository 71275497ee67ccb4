"""How alike the identities of originals and anonymized (or recovered) faces are to a recogniser."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import cosine, judges_with, mean, unit


class IdentitySimilarity(Metric):
    """Mean over faces of cos(e(X), e(X')) = <e(X), e(X')> / (|e(X)| |e(X')|), in [-1, 1]; 1 for one and the same.

    Lower is better for anonymized faces; for recovered ones, higher, and a table says so.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1; section 4.3, Table 3.
    """

    title = "identity similarity"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {judge: mean(cosine(unit(first), unit(second))) for judge, (first, second) in pairs.items()}
