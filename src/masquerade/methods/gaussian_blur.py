"""Blur of the face region: IdentityDP, section V.E (3)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from PIL import Image
from pydantic import PositiveFloat

from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, _region

BALANCE = 0.01  # weight of smoothness against fidelity in Wiener's filter


class GaussianBlur(Method):
    """Removes the fine detail of the face region.

    ``resample`` is IdentityDP's blur (section V.E (3), after the extreme low resolution of Ryoo et al. 2017): it
    averages the region down and enlarges it again, bicubically. ``gaussian`` is the filter that most papers call blur.
    Both filter the region alone, so nothing of the background enters it. docs/obfuscations.md gives the reason why a
    size is a block and not a resolution.
    """

    title = "Blur"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), V.E; Ryoo et al. 2017 (arXiv:1604.03196)"
    capabilities = Capabilities(landmarks=True, invertible=True)

    class Variant(Settings):
        kind: Literal["resample", "gaussian"]
        """How the image is blurred: resample reduces and enlarges it again (IdentityDP, section V.E); gaussian applies
        a Gaussian filter."""
        size: PositiveFloat
        """Strength in pixels of a 256-pixel image: for resample, the side of the block that becomes one sample (7, 19:
        IdentityDP, Table I; 8, 16: Figure 7); for gaussian, the standard deviation of the filter (8: cao21, Figure
        1)."""
        where: _region.Area
        """The area that is hidden: the face region (IdentityDP, section V.E) or the whole image (cao21, Figure 1)."""

    variant: Variant

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        if self.variant.kind == "resample":
            block = _region.in_pixels(self.variant.size, faces.images, at_least=1.5)
            return _region.edit(faces, lambda region, name: resample_blocks(region, block), self.variant.where)
        from scipy.ndimage import gaussian_filter

        sigma = (0, *[_region.in_pixels(self.variant.size, faces.images)] * 2)  # of channels, rows and columns
        return _region.edit(
            faces, lambda region, name: gaussian_filter(region, sigma, mode="nearest"), self.variant.where
        )

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Wiener deconvolution (cao21, Table 4) of the whole image with the known point spread."""
        from skimage.restoration import wiener

        spread = self._point_spread(_region.in_pixels(self.variant.size, images))
        margin = spread.shape[0] // 2 + 1  # mirrored, because the filter wraps one border around to the other
        padded = np.pad(images.astype(np.float64), ((0, 0), (0, 0), (margin, margin), (margin, margin)), mode="reflect")
        restored = np.array([[wiener(plane, spread, BALANCE, clip=True) for plane in image] for image in padded])
        return restored[..., margin:-margin, margin:-margin].astype(np.float32)

    def _point_spread(self, size: float) -> np.ndarray:
        """A Gaussian point spread, float64 (2 r + 1, 2 r + 1), sum 1; ``resample`` has the variance of its block."""
        sigma = size if self.variant.kind == "gaussian" else size / np.sqrt(12)
        along = np.arange(-max(1, round(3 * sigma)), max(1, round(3 * sigma)) + 1)
        spread = np.exp(-0.5 * np.add.outer(along**2, along**2) / sigma**2)
        return spread / spread.sum()


def resample_blocks(region: np.ndarray, block: float) -> np.ndarray:
    """The region, float32 (3, h, w), reduced to one sample for each ``block`` x ``block`` pixels and enlarged."""
    # the bicubic kernel overshoots
    return np.clip(_region.resample(region, block, Image.Resampling.BICUBIC), -1.0, 1.0)
