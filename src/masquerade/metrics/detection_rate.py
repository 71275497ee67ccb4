"""Share of anonymized pictures in which a detector finds a face."""

from masquerade.core.measurements import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, share


class DetectionRate(Metric):
    """Mean over anonymized faces of [a face is detected], in [0, 1]; higher is better. Refused faces are not counted.

    ``detected``: (N,), 1 or 0.
    Reference: Wen et al. 2022 (IdentityDP), section V.B (FDR, with the HOG detector of Dalal and Triggs 2005).

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(DetectionRate, evidence({"hog.detected": [1, 1, 1, 1]}, {"hog.detected": [1, 1, 1, 0]}))
    {'hog': 0.75}
    """

    title = "face detection rate"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: share(stack(evidence.derived[f"{judge}.detected"].astype("float64")), evidence.weights)
            for judge in judges_with(evidence, "detected")
        }
