"""Differences of the pixels to the source picture: PSNR, SSIM, mean squared and mean absolute error."""

from typing import cast

import numpy as np

from masquerade.core.images import to_uint8
from masquerade.judges import Judge

PEAK = 255.0
SIGMA = 1.5  # of the Gaussian window of SSIM, which scikit-image limits to 11 x 11 pixels


class Pixels(Judge):
    """Measured on the 8-bit RGB pictures of an archive, without any scaling.

    ``mse`` (levels squared) and ``mae`` (levels): means over pixels and channels on the scale 0..255.
    ``psnr`` = 10 log10(255^2 / mse) in dB, infinite for equal pictures.
    ``ssim``: equation 13 of Wang et al. with a Gaussian window of 11 x 11, sigma 1.5, K1 = 0.01, K2 = 0.03 and
    population covariances; mean over the pixels whose window lies inside the picture, then over R, G and B. [-1, 1].

    All four are left out without a reference.
    """

    title = "pixels"
    source = "Wang et al. 2004, IEEE TIP 13(4), doi:10.1109/TIP.2003.819861"
    engine = "none"
    packages = ("scikit-image",)
    quantities = {"psnr": (), "ssim": (), "mse": (), "mae": ()}

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        if reference is None:
            return {}
        pictures, sources = to_uint8(images), to_uint8(reference)
        difference = pictures.astype(np.float64) - sources
        mse = np.mean(difference**2, axis=(1, 2, 3))
        return {
            "psnr": decibels(mse),
            "ssim": np.array([_ssim(*pair) for pair in zip(pictures, sources, strict=True)]),
            "mse": mse,
            "mae": np.mean(np.abs(difference), axis=(1, 2, 3)),
        }


def decibels(mse: np.ndarray) -> np.ndarray:
    """PSNR in dB of mean squared errors in levels squared; infinite for 0."""
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(PEAK**2 / mse)


def _ssim(picture: np.ndarray, source: np.ndarray) -> float:
    from skimage.metrics import structural_similarity

    similarity = structural_similarity(
        picture, source, data_range=PEAK, channel_axis=-1,
        gaussian_weights=True, sigma=SIGMA, use_sample_covariance=False,
    )  # fmt: skip
    return cast("float", similarity)  # and no map of it, which was not requested
