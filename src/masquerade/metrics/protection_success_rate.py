"""Share of faces that a recognizer with its published threshold takes for another person."""

import operator
from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances, share_at_threshold


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
