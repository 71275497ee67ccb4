"""Share of faces that a recognizer takes for another person, at a stated false-accept rate."""

import operator
from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import shares_at_rate


class ProtectionSuccessRateAtFar(Metric):
    """Mean over faces of [||e(X) - e(X')||_2 >= t], in [0, 1]; higher is better.

    e: the judge's embedding, (N, D). The threshold t accepts at most a share ``far`` of all impostor pairs of the
    calibration pictures, whose people are disjoint from those of the test pictures. The value is NaN if these pairs are
    too few for ``far``. A face that was not anonymized or measured does not count as protected.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; Grother et al. 2019 (NIST FRVT) for thresholds at a
    false-accept rate.

    >>> from masquerade.metrics._examples import evidence, values
    >>> strangers = {"net.embedding": [[0], [1], [3]]}  # distances 1, 2 and 3: the threshold is 2 for far = 1/3
    >>> faces = evidence({"net.embedding": [[0], [0]]}, {"net.embedding": [[1], [2]]}, calibration=strangers)
    >>> values(ProtectionSuccessRateAtFar, faces, far=0.34)
    {'net': 0.5}
    """

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
