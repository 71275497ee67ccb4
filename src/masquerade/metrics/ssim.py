"""Structural similarity between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import of_pixels


class Ssim(Metric):
    """Mean over faces of SSIM, in [-1, 1], 1 for identical pictures; higher is better.

    SSIM uses an 11 x 11 Gaussian window with sigma 1.5; judges measure it of each face, (N,).
    Reference: Wang et al. 2004; Wen et al. 2022 (IdentityDP), section V.B.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Ssim, evidence({"id": ["a", "b"]}, {"pixels.ssim": [0.5, 1.0]}))
    {'': 0.75}
    """

    title = "structural similarity"
    direction = "higher"
    unit = "index"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_pixels(evidence, "ssim")
