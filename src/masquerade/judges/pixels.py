"""Differences from the source picture, pixel by pixel, on 8-bit pictures."""

import numpy as np

from masquerade.images import to_uint8
from masquerade.judges import Judge


class Pixels(Judge):
    """PSNR = 10 log10(255^2 / MSE) over all channels, infinite for identical pictures; SSIM with the 11 x 11 Gaussian
    window (sigma 1.5) and constants of Wang et al. 2004, mean over channels; MSE and MAE on the scale [0, 1].

    Pictures are compared as they are stored, 8 bit, so that nothing is normalised twice.
    """

    title = "pixel differences"
    source = "Wang et al. 2004 (SSIM), through scikit-image"
    quantities = {"psnr": (), "ssim": (), "mse": (), "mae": ()}

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        if reference is None:
            return {}
        from skimage.metrics import structural_similarity

        derived, source = to_uint8(images), to_uint8(reference)
        gap = (derived.astype(np.float64) - source) / 255.0
        mse, mae = (gap**2).mean(axis=(1, 2, 3)), np.abs(gap).mean(axis=(1, 2, 3))
        with np.errstate(divide="ignore"):
            psnr = -10.0 * np.log10(mse)
        ssim = [
            structural_similarity(
                one, other, channel_axis=-1, data_range=255, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
            )
            for one, other in zip(derived, source, strict=True)
        ]
        return {"psnr": psnr, "ssim": np.array(ssim), "mse": mse, "mae": mae}
