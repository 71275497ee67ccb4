"""Pixel errors and perceptual distances between each original and its anonymized (or recovered) face."""

from masquerade.core.face_tables import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import average_pixels, judges_with, mean


class Psnr(Metric):
    """Mean over faces of PSNR = 10 log10(255^2 / MSE) in dB, at least 0; higher is better.

    MSE: of 8-bit RGB, (N, 3, H, W); judges measure the PSNR of each face, (N,). Identical images have an infinite
    PSNR and are left out of the mean, so the control `original` has no value.
    Reference: Wen et al. 2022 (IdentityDP), section V.B.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Psnr, evidence({"id": ["a", "b", "c"]}, {"pixels.psnr": [20.0, 30.0, float("inf")]}))
    {'': 25.0}
    """

    name = "psnr"
    title = "peak signal-to-noise ratio"
    direction = "higher"
    unit = "dB"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_pixels(evidence, "psnr")


class Ssim(Metric):
    """Mean over faces of SSIM, in [-1, 1], 1 for identical images; higher is better.

    SSIM uses an 11 x 11 Gaussian window with sigma 1.5; judges measure it of each face, (N,).
    Reference: Wang et al. 2004; Wen et al. 2022 (IdentityDP), section V.B.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Ssim, evidence({"id": ["a", "b"]}, {"pixels.ssim": [0.5, 1.0]}))
    {'': 0.75}
    """

    name = "ssim"
    title = "structural similarity"
    direction = "higher"
    unit = "index"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_pixels(evidence, "ssim")


LEVELS = 255.0


class Mae(Metric):
    """Mean over faces, pixels and channels of |X - X'|, in [0, 1]; lower is better.

    X: 8-bit RGB, (N, 3, H, W), on the scale [0, 1]. The measured ``pixels.mae`` (N,) is on the scale 0 to 255.
    Reference: Cao et al. 2021, section 5.2.2, Table 4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Mae, evidence({"id": ["a", "b"]}, {"pixels.mae": [51.0, 102.0]}))  # (51 + 102) / 2 / 255
    {'': 0.3}
    """

    name = "mae"
    title = "mean absolute error"
    direction = "lower"
    unit = "of pixels in [0, 1]"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_pixels(evidence, "mae", LEVELS)


class Mse(Metric):
    """Mean over faces, pixels and channels of (X - X')^2, in [0, 1]; lower is better.

    X: 8-bit RGB, (N, 3, H, W), on the scale [0, 1]. The measured ``pixels.mse`` (N,) is on the scale 0 to 255^2.
    -10 log10 of the value is at most the PSNR, which is a mean over faces of logarithms.
    Reference: Yuan et al. 2025 (iFADIT), section 4.3, Table 3.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Mse, evidence({"id": ["a"]}, {"pixels.mse": [51.0**2]}))  # (51 / 255)^2
    {'': 0.04}
    """

    name = "mse"
    title = "mean squared error"
    direction = "lower"
    unit = "squared, of pixels in [0, 1]"
    digits = 5

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_pixels(evidence, "mse", LEVELS**2)


class PerceptualDistance(Metric):
    """Mean over faces of a judge's perceptual distance, at least 0, 0 for identical images; lower is better.

    ``perceptual``: (N,), one number a face. The judge ``lpips`` is LPIPS itself (AlexNet). The judge ``mobilenet_v2``
    has the same formula on another network, without learned weights, and is not LPIPS.
    Reference: Zhang et al. 2018, Eq. 1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(PerceptualDistance, evidence({"id": ["a", "b"]}, {"lpips.perceptual": [0.1, 0.3]}))
    {'lpips': 0.2}
    """

    name = "perceptual_distance"
    title = "perceptual distance"
    direction = "lower"
    unit = "distance of activations"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: mean(stack(evidence.derived[f"{judge}.perceptual"]), evidence.weights)
            for judge in judges_with(evidence, "perceptual")
        }
