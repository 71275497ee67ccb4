"""Mean squared error of the pixels of each original and its anonymized (or recovered) face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import mean

LEVELS = 255.0


class Mse(Metric):
    """Mean over faces, pixels and channels of (X - X')^2 of 8-bit RGB on the scale [0, 1], in [0, 1].

    -10 log10 of it is at most the PSNR, which is a mean over faces of logarithms.
    Reference: Yuan et al. 2025 (iFADIT), section 4.3, Table 3.
    """

    title = "mean squared error"
    direction = "lower"
    unit = "squared, of pixels in [0, 1]"
    digits = 5

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        column = "pixels.mse"  # levels squared, on the scale 0..255
        return {"": mean(stack(evidence.derived[column]) / LEVELS**2)} if column in evidence.derived else {}
