"""Mean squared error between the pixels of each original and its anonymized (or recovered) face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import of_pixels

LEVELS = 255.0


class Mse(Metric):
    """Mean over faces, pixels and channels of (X - X')^2, in [0, 1]; lower is better.

    X: 8-bit RGB, (N, 3, H, W), on the scale [0, 1]. The measured ``pixels.mse`` (N,) is on the scale 0 to 255^2.
    -10 log10 of the value is at most the PSNR, which is a mean over faces of logarithms.
    Reference: Yuan et al. 2025 (iFADIT), section 4.3, Table 3.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Mse, evidence({"id": ["a"]}, {"pixels.mse": [51.0**2]}))  # (51 / 255)^2
    {'': 0.04}
    """

    title = "mean squared error"
    direction = "lower"
    unit = "squared, of pixels in [0, 1]"
    digits = 5

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_pixels(evidence, "mse", LEVELS**2)
