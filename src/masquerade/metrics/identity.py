"""Distances and angles between the embeddings of each original and its anonymized face."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import cosine, distances, judges_with, mean, unit


class IdentityDistance(Metric):
    """Mean over faces of ||e(X) - e(X')||_2, at least 0; higher is better.

    e: the judge's embedding, (N, D). Unit embeddings give [0, 2] (FaceNet's convention, which the values of
    IdentityDP's Table I fit); dlib's embeddings are close to unit length.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; Schroff et al. 2015.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentityDistance, evidence({"net.embedding": [[0, 0]]}, {"net.embedding": [[3, 4]]}))
    {'net': 5.0}
    """

    name = "identity_distance"
    title = "identity distance"
    direction = "higher"
    unit = "Euclidean distance of embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: mean(distances(evidence, judge), evidence.weights) for judge in judges_with(evidence, "embedding")
        }


class IdentitySimilarity(Metric):
    """Mean over faces of cos(e(X), e(X')) = <e(X), e(X')> / (|e(X)| |e(X')|), in [-1, 1]; 1 for the same embedding.

    e: the judge's embedding, (N, D). Lower is better for anonymized faces. Higher is better for recovered faces, and
    a table of these says so.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1; section 4.3, Table 3.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentitySimilarity, evidence({"net.embedding": [[1, 0]]}, {"net.embedding": [[3, 4]]}))  # 3 / 5
    {'net': 0.6}
    """

    name = "identity_similarity"
    title = "identity similarity"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {
            judge: mean(cosine(unit(first), unit(second)), evidence.weights) for judge, (first, second) in pairs.items()
        }


class IdentityL1(Metric):
    """Mean over faces and coordinates of |e(X) - e(X')|, at least 0; higher is better.

    e: the judge's embedding at unit length, (N, D). Two random directions give about 1.13 / sqrt(D): 0.050 for D = 512,
    0.100 for dlib's 128. Judges with different D do not compare. The paper says "L1 distance"; its values of 0.02 to
    0.05 can only be a mean over coordinates.
    Reference: Yuan et al. 2025 (iFADIT), section 4.2, Table 1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(IdentityL1, evidence({"net.embedding": [[2, 0]]}, {"net.embedding": [[0, 5]]}))  # (|1| + |-1|) / 2
    {'net': 1.0}
    """

    name = "identity_l1"
    title = "identity L1 distance"
    direction = "higher"
    unit = "mean over coordinates of unit embeddings"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}
        return {
            judge: mean(np.abs(unit(first) - unit(second)).mean(axis=1), evidence.weights)
            for judge, (first, second) in pairs.items()
        }
