"""Euclidean distance between the embeddings of each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances, judges_with, mean


class IdentityDistance(Metric):
    """Mean over faces of ||e(X) - e(X')||_2, at least 0; higher is better.

    e: the judge's embedding, (N, D). Unit embeddings give [0, 2] (FaceNet's convention, which the values of
    IdentityDP's Table I fit); dlib's embeddings are close to unit length.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; Schroff et al. 2015.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentityDistance, evidence({"net.embedding": [[0, 0]]}, {"net.embedding": [[3, 4]]}))
    {'net': 5.0}
    """

    title = "identity distance"
    direction = "higher"
    unit = "Euclidean distance of embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: mean(distances(evidence, judge), evidence.weights) for judge in judges_with(evidence, "embedding")
        }
