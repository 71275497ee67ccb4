"""Structural similarity between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import mean


class Ssim(Metric):
    """Mean over faces of SSIM (11 x 11 Gaussian window, sigma 1.5), in [-1, 1]; 1 for identical pictures.

    Reference: Wang et al. 2004; Wen et al. 2022 (IdentityDP), section V.B.
    """

    title = "structural similarity"
    direction = "higher"
    unit = "index"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        column = "pixels.ssim"
        if column not in evidence.derived:
            return {}
        return {"": mean(stack(evidence.derived[column]))}
