"""Distances of the embeddings of each original and its anonymized face, and the shares of faces at a threshold."""

import operator
from typing import Annotated

import numpy as np
from pydantic import Field, PositiveFloat

from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import average_faces, cosine, distances, share_at_threshold, shares_at_rate, unit


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
        return average_faces(evidence, "embedding", distances)


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
        return average_faces(evidence, "embedding", lambda first, second: cosine(unit(first), unit(second)))


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
        return average_faces(
            evidence, "embedding", lambda first, second: np.abs(unit(first) - unit(second)).mean(axis=1)
        )


class ProtectionSuccessRate(Metric):
    """Mean over faces of [||e(X) - e(X')||_2 >= t], in [0, 1]; higher is better.

    e: the judge's embedding, (N, D); t: the threshold that its authors publish. A face that was not anonymized or
    measured does not count as protected: it is missing from ``over``.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; dlib's threshold: King 2017.

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces = evidence({"net.embedding": [[0], [0]]}, {"net.embedding": [[0.5], [0.7]]})
    >>> values(ProtectionSuccessRate, faces, thresholds={"net": 0.6})
    {'net': 0.5}
    """

    name = "protection_success_rate"
    title = "protection success rate"
    direction = "higher"
    unit = "share of faces"

    class Params(Settings):
        """The thresholds."""

        thresholds: dict[str, PositiveFloat]
        """For each evaluator, the largest distance at which two faces count as one person (0.6: dlib's face recognition
        model, King 2017)."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values = {}
        for judge, threshold in self.params.thresholds.items():
            if judge in evidence.judges:
                moved, note = distances(*evidence.pair(f"{judge}.embedding")), f"threshold {threshold:g}, as published"
                values[judge] = share_at_threshold(moved, evidence.weights, operator.ge, threshold, note)
        return values


class FalseAcceptRate(Settings):
    """The false-accept rate."""

    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate at which the threshold is set (0.01: common in face privacy, e.g. CLIP2Protect, and about that
    of random faces in falco's Table 1)."""


class ProtectionSuccessRateAtFar(Metric):
    """Mean over faces of [||e(X) - e(X')||_2 >= t], in [0, 1]; higher is better.

    e: the judge's embedding, (N, D). The threshold t accepts at most a share ``far`` of all impostor pairs of the
    calibration images, whose people are disjoint from those of the test images. The value is NaN if these pairs are
    too few for ``far``. A face that was not anonymized or measured does not count as protected.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; Grother et al. 2019 (NIST FRVT) for thresholds at a
    false-accept rate.

    >>> from masquerade.metrics._examples import evidence, values
    >>> strangers = {"net.embedding": [[0], [1], [3]]}  # distances 1, 2 and 3: the threshold is 2 for far = 1/3
    >>> faces = evidence({"net.embedding": [[0], [0]]}, {"net.embedding": [[1], [2]]}, calibration=strangers)
    >>> values(ProtectionSuccessRateAtFar, faces, far=0.34)
    {'net': 0.5}
    """

    name = "protection_success_rate_at_far"
    title = "protection success rate at a false-accept rate"
    direction = "higher"
    unit = "share of faces"

    Params = FalseAcceptRate
    params: FalseAcceptRate

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return shares_at_rate(evidence, self.params.far, operator.ge)


class ReIdentificationRate(Metric):
    """Mean over faces of [||e(X) - e(X')||_2 < t], in [0, 1]; lower is better.

    The complement of `protection_success_rate_at_far`, with the same embeddings e, (N, D), and the same threshold t. A
    face that was not anonymized or measured does not count as hidden: it is missing from ``over``.
    The paper counts "images whose identity is still detected in the anonymized version" and gives no protocol. Its
    faces drawn at random have 3.61 % and 1.08 %. That is far above the chance to be the nearest of 6,000 people, so
    the paper must compare with a threshold. The choice of the threshold is ours.
    Reference: Barattin et al. 2023 (FALCO), section 4.1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> people = {"net.embedding": [[0], [4], [10]]}  # distances 4, 6 and 10: the threshold is 10 for far = 2/3
    >>> values(ReIdentificationRate, evidence(people, {"net.embedding": [[9], [14], [10]]}), far=0.67)
    {'net': 0.6667}
    """

    name = "re_identification_rate"
    title = "re-identification rate"
    direction = "lower"
    unit = "share of faces"

    Params = FalseAcceptRate
    params: FalseAcceptRate

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return shares_at_rate(evidence, self.params.far, operator.lt)
