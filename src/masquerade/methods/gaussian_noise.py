"""Gaussian noise on the face region: IdentityDP, section V.E (2)."""

from collections.abc import Sequence

import numpy as np
from pydantic import PositiveFloat

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, _region


class GaussianNoise(Method):
    """Adds Gaussian noise to each pixel's RGB value of the face region.

    Wen et al. 2022, IdentityDP, section V.E (2) and Figure 7. Values are clipped to [-1, 1]. The noise of a face is the
    same for every sigma, so two variants differ by its strength alone.
    """

    title = "Noise"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), section V.E"
    capabilities = Capabilities(landmarks=True, deterministic=False, invertible=True)

    class Variant(Settings):
        sigma: PositiveFloat
        """Standard deviation of the noise in gray levels of 8-bit RGB (9 and 49: IdentityDP, Table I; 9 and 18: Figure
        7; 15: cao21, Figure 1)."""
        where: _region.Area
        """The area that is hidden: the face region (IdentityDP, section V.E) or the whole image (cao21, Figure 1)."""

    variant: Variant

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        sigma = self.variant.sigma / 127.5  # [-1, 1] spans 255 steps

        def noisy(region: np.ndarray, name: str) -> np.ndarray:
            noise = seeding.make_generator(seed, "gaussian_noise", name).standard_normal(region.shape, dtype=np.float32)
            return np.clip(region + sigma * noise, -1.0, 1.0)

        return _region.edit(faces, noisy, self.variant.where)

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Non-local means (cao21, Table 4) of the whole image with the known sigma; patches of 5, at most 6 away."""
        from skimage.restoration import denoise_nl_means

        sigma = self.variant.sigma / 127.5
        restored = [
            denoise_nl_means(image, 5, 6, h=0.8 * sigma, sigma=sigma, fast_mode=True, channel_axis=0)
            for image in images
        ]
        return np.stack(restored).clip(-1, 1).astype(np.float32)
