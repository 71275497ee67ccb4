"""Pixelation of the face region: IdentityDP, section V.E (1)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from PIL import Image
from pydantic import PositiveFloat

from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, _region

COMPACTNESS = 10.0
"""SLIC's weight of place against color, on CIELAB values (10: the default of scikit-image)."""


class Pixelation(Method):
    """Clusters pixels of the face region by place and color, and replaces each pixel by the mean of its cluster.

    Wen et al. 2022, IdentityDP, section V.E (1). The paper describes superpixels, for which ``slic`` (Achanta et al.
    2012, IEEE TPAMI 34(11)) is the standard. ``grid`` is the usual mosaic, in which only the place counts. See
    docs/obfuscations.md.
    """

    title = "Pixelation"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), section V.E"
    capabilities = Capabilities(landmarks=True, invertible=True)

    class Variant(Settings):
        clusters: Literal["slic", "grid"]
        """How pixels are grouped: slic forms clusters that are near in place and color (IdentityDP, section V.E); grid
        forms squares."""
        size: PositiveFloat
        """Side of a cluster in pixels of a 256-pixel image (8, 16: IdentityDP, Table I; 4, 8: Figure 7; 8: cao21,
        Figure 1)."""
        where: _region.Area
        """The area that is hidden: the face region (IdentityDP, section V.E) or the whole image (cao21, Figure 1)."""

    variant: Variant

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        side = _region.in_pixels(self.variant.size, faces.images, at_least=2.0)
        clusters = label_superpixels if self.variant.clusters == "slic" else label_squares
        return _region.edit(
            faces, lambda region, name: average_labels(region, clusters(region, side)), self.variant.where
        )

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Bilinear interpolation between the means of the blocks, over the whole image (cao21, Table 4)."""
        side = _region.in_pixels(self.variant.size, images)
        return np.stack([_region.resample(image, side, Image.Resampling.BILINEAR) for image in images])


def label_squares(region: np.ndarray, side: float) -> np.ndarray:
    """Labels of squares of ``side`` pixels from the top left corner, int (h, w). The last squares may be narrower."""
    height, width = region.shape[-2:]
    down, across = (np.floor(np.arange(length) / side).astype(int) for length in (height, width))
    return down[:, None] * (across[-1] + 1) + across


def label_superpixels(region: np.ndarray, side: float) -> np.ndarray:
    """Labels of SLIC superpixels of about ``side`` x ``side`` pixels, int (h, w)."""
    from skimage.segmentation import slic

    count = max(1, round(region.shape[-2] * region.shape[-1] / side**2))
    return slic((region + 1) / 2, n_segments=count, compactness=COMPACTNESS, start_label=0, channel_axis=0)


def average_labels(region: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The region, float32 (3, h, w), with the mean color of its label in place of each pixel."""
    flat = labels.ravel()
    count = np.maximum(np.bincount(flat), 1)
    means = np.stack([np.bincount(flat, weights=plane.ravel()) / count for plane in region])
    return means[:, labels].astype(np.float32)
