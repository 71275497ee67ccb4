"""How far the anonymized face is from its original in the eyes of a recogniser."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances, judges_with, mean


class IdentityDistance(Metric):
    """Mean over faces of ||e(X) - e(X')||_2, for every judge with an embedding e.

    Unit embeddings give [0, 2] (FaceNet's convention, which the values of IdentityDP's Table I fit); dlib's are close
    to unit length. Reference: Wen et al. 2022 (IdentityDP), section V.B; Schroff et al. 2015.
    """

    title = "identity distance"
    direction = "higher"
    unit = "Euclidean distance of embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: mean(distances(evidence, judge)) for judge in judges_with(evidence, "embedding")}
