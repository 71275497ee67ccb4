"""Perceptual distance between each original and its anonymized face."""

from masquerade.core.measurements import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean


class PerceptualDistance(Metric):
    """Mean over faces of a judge's perceptual distance, at least 0, 0 for identical pictures; lower is better.

    ``perceptual``: (N,), one number a face. The judge ``lpips`` is LPIPS itself (AlexNet). The judge ``mobilenet_v2``
    has the same formula on another network, without learned weights, and is not LPIPS.
    Reference: Zhang et al. 2018, Eq. 1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(PerceptualDistance, evidence({"id": ["a", "b"]}, {"lpips.perceptual": [0.1, 0.3]}))
    {'lpips': 0.2}
    """

    title = "perceptual distance"
    direction = "lower"
    unit = "distance of activations"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: mean(stack(evidence.derived[f"{judge}.perceptual"]), evidence.weights)
            for judge in judges_with(evidence, "perceptual")
        }
