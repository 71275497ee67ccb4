"""In how many anonymized pictures a detector still finds a face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import judges_with, mean


class DetectionRate(Metric):
    """Share of anonymized faces in which each detector finds a face, in [0, 1]; refused faces are not counted.

    Reference: Wen et al. 2022 (IdentityDP), section V.B (FDR, with the HOG detector of Dalal and Triggs 2005).
    """

    title = "face detection rate"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        found = {}
        for judge in judges_with(evidence, "detected"):
            rate = mean(stack(evidence.derived[f"{judge}.detected"].astype("float64")))
            found[judge] = Value(rate.value, rate.over, rate.of, note=rate.note)
        return found
