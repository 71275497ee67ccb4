"""Differences of the pixels to the source image: PSNR, SSIM, mean squared and mean absolute error."""

import numpy as np

from masquerade.core.images import to_uint8
from masquerade.judges import Judge

PEAK = 255.0
SIGMA, RADIUS = 1.5, 5  # of the Gaussian window of SSIM, 11 x 11 pixels
C1, C2 = (0.01 * PEAK) ** 2, (0.03 * PEAK) ** 2
AT_ONCE = 8  # images whose maps for SSIM are in memory


class Pixels(Judge):
    """Measured on the 8-bit RGB images of an archive, without any scaling.

    ``mse`` (levels squared) and ``mae`` (levels): means over pixels and channels on the scale 0..255.
    ``psnr`` = 10 log10(255^2 / mse) in dB, infinite for equal images.
    ``ssim``: equation 13 of Wang et al. with a Gaussian window of 11 x 11, sigma 1.5, K1 = 0.01, K2 = 0.03 and
    population covariances; mean over the pixels whose window lies inside the image, then over R, G and B. [-1, 1].

    All four are left out without a reference.
    """

    name = "pixels"
    title = "pixels"
    source = "Wang et al. 2004, IEEE TIP 13(4), doi:10.1109/TIP.2003.819861"
    engine = "none"
    packages = ("scipy",)
    quantities = {"psnr": (), "ssim": (), "mse": (), "mae": ()}

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        if reference is None:
            return {}
        pictures, sources = to_uint8(images), to_uint8(reference)
        difference = pictures.astype(np.float64) - sources
        mse = np.mean(difference**2, axis=(1, 2, 3))
        return {
            "psnr": decibels(mse),
            "ssim": np.concatenate(
                [
                    _ssim(pictures[first : first + AT_ONCE], sources[first : first + AT_ONCE])
                    for first in range(0, len(pictures), AT_ONCE)
                ]
                or [np.empty(0)]
            ),
            "mse": mse,
            "mae": np.mean(np.abs(difference), axis=(1, 2, 3)),
        }


def decibels(mse: np.ndarray) -> np.ndarray:
    """PSNR in dB of mean squared errors in levels squared; infinite for 0."""
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(PEAK**2 / mse)


def _ssim(pictures: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """SSIM of images uint8 (N, H, W, 3) each: (N,). The same numbers as scikit-image's, without a call a channel."""
    first, second = (np.ascontiguousarray(part.transpose(0, 3, 1, 2), np.float64) for part in (pictures, sources))
    mean, other = _average_windows(first), _average_windows(second)
    variances = _average_windows(first * first) - mean * mean + (_average_windows(second * second) - other * other)
    covariance = _average_windows(first * second) - mean * other
    likeness = (2 * mean * other + C1) * (2 * covariance + C2) / ((mean**2 + other**2 + C1) * (variances + C2))
    inside = likeness[..., RADIUS:-RADIUS, RADIUS:-RADIUS]
    return np.array([[channel.mean() for channel in picture] for picture in inside]).mean(axis=1)


def _average_windows(planes: np.ndarray) -> np.ndarray:
    """The weighted means of the windows around all pixels of planes (N, 3, H, W)."""
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(planes, (0, 0, SIGMA, SIGMA), radius=RADIUS)
