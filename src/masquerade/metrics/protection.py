"""Shares of faces that a recognizer takes for another person, or for the same one, at a threshold."""

import operator
from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances, share_at_threshold, shares_at_rate


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

        thresholds: dict[str, Annotated[float, Field(gt=0)]]
        """Judge -> the largest distance of one person (0.6: dlib's face recognition model, King 2017)."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: share_at_threshold(
                distances(evidence, judge),
                evidence.weights,
                operator.ge,
                threshold,
                f"threshold {threshold:g}, as published",
            )
            for judge, threshold in self.params.thresholds.items()
            if judge in evidence.judges
        }


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

    class Params(Settings):
        """The false-accept rate."""

        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate of the threshold (0.01: common in face privacy, e.g. CLIP2Protect)."""

    params: Params

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

    class Params(Settings):
        """The false-accept rate."""

        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate of the threshold (0.01: about the rate for random faces in falco's Table 1)."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return shares_at_rate(evidence, self.params.far, operator.lt)
