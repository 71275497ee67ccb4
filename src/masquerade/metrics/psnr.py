"""Peak signal-to-noise ratio between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import of_pixels


class Psnr(Metric):
    """Mean over faces of PSNR = 10 log10(255^2 / MSE) in dB, at least 0; higher is better.

    MSE: of 8-bit RGB, (N, 3, H, W); judges measure the PSNR of each face, (N,). Identical pictures have an infinite
    PSNR and are left out of the mean, so the control `original` has no value.
    Reference: Wen et al. 2022 (IdentityDP), section V.B.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Psnr, evidence({"id": ["a", "b", "c"]}, {"pixels.psnr": [20.0, 30.0, float("inf")]}))
    {'': 25.0}
    """

    title = "peak signal-to-noise ratio"
    direction = "higher"
    unit = "dB"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_pixels(evidence, "psnr")
