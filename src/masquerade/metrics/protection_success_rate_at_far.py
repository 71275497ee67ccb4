"""How many faces a recogniser takes for somebody else, with a threshold set on other people."""

import math
from typing import Annotated

from pydantic import Field

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances, impostor_distances, judges_with, threshold_at, too_few
from masquerade.metrics.protection_success_rate import protected
from masquerade.settings import Settings


class ProtectionSuccessRateAtFar(Metric):
    """Share of faces at least as far from their original as the threshold at a stated false-accept rate, in [0, 1].

    The threshold comes from all impostor pairs of the calibration pictures, whose people are disjoint from the test
    pictures. NaN where those pairs are too few for the rate. A face that could not be anonymized or measured is not
    counted as protected. Reference: Wen et al. 2022 (IdentityDP), section V.B; Grother et al. 2019 (NIST FRVT) for
    thresholds at a false-accept rate.
    """

    title = "protection success rate at a false-accept rate"
    direction = "higher"
    unit = "share of faces"

    class Params(Settings):
        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate of the threshold (0.01: common in face privacy, e.g. CLIP2Protect)."""

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._judged(evidence, judge) for judge in judges_with(evidence, "embedding")}

    def _judged(self, evidence: Evidence, judge: str) -> Value:
        far, apart = self.params.far, distances(evidence, judge)
        impostors = impostor_distances(evidence, judge)
        threshold = threshold_at(far, impostors)
        if math.isnan(threshold):
            return Value(math.nan, 0, len(apart), note=too_few(far, len(impostors)))
        return protected(
            apart, threshold, f"threshold {threshold:.3f} at FAR {far:g} of {len(impostors)} impostor pairs"
        )
