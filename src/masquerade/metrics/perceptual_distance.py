"""Perceptual distance between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import judges_with, mean


class PerceptualDistance(Metric):
    """Mean over faces of a judge's perceptual distance, at least 0; 0 for identical pictures.

    ``lpips``: LPIPS itself (AlexNet). ``mobilenet_v2``: built like it on another network without learned weights, never
    to be read as LPIPS. Reference: Zhang et al. 2018, Eq. 1.
    """

    title = "perceptual distance"
    direction = "lower"
    unit = "distance of activations"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: mean(stack(evidence.derived[f"{judge}.perceptual"])) for judge in judges_with(evidence, "perceptual")
        }
