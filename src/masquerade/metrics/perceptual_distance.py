"""Perceptual distance between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import mean


class PerceptualDistance(Metric):
    """Mean over faces of the distance of MobileNetV2's normalised activations, at least 0; 0 for identical pictures.

    Built like LPIPS on another network without learned weights: never to be read as LPIPS.
    Reference: Zhang et al. 2018, Eq. 1.
    """

    title = "perceptual distance"
    direction = "lower"
    unit = "distance of activations"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        column = "mobilenet_v2.perceptual"
        if column not in evidence.derived:
            return {}
        return {"mobilenet_v2": mean(stack(evidence.derived[column]))}
