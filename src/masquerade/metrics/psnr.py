"""Peak signal-to-noise ratio between each original and its anonymized face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import mean


class Psnr(Metric):
    """Mean over faces of PSNR = 10 log10(255^2 / MSE) on 8-bit RGB, in dB.

    Identical pictures have an infinite PSNR and are left out of the mean: the control `original` has no value.
    Reference: Wen et al. 2022 (IdentityDP), section V.B.
    """

    title = "peak signal-to-noise ratio"
    direction = "higher"
    unit = "dB"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        column = "pixels.psnr"
        if column not in evidence.derived:
            return {}
        values = stack(evidence.derived[column])
        note = "infinite: the pictures are identical" if (values == float("inf")).any() else ""
        return {"": mean(values, note)}
