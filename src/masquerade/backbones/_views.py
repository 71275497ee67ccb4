"""Augmented views of images with their labels or points, on which the parser and the landmark network learn."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from masquerade.training.batches import build_maps, mirror, to_images

TURN, ZOOM, SHIFT = 5.0, 0.05, 0.04
"""Largest rotation in degrees, largest change of the scale as a share, largest shift as a share of the side."""
GAIN, LIFT = 0.2, 0.15
"""Largest change of the contrast as a share, and of the brightness on the scale [-1, 1]."""


@dataclass(frozen=True)
class Views:
    """The augmentation of each image of a batch: mirrored or not, then turned, scaled, shifted, brighter or darker.

    ``mirrored`` bool (N,); ``place`` (N, 2, 3): the affine map from points of the view to points of the image, both
    in [-1, 1] from edge to edge; ``gain`` and ``lift`` (N, 1, 1, 1). Labels and points get the view of their image.
    """

    mirrored: Tensor
    place: Tensor
    gain: Tensor
    lift: Tensor

    @classmethod
    def sampled(cls, draw: np.random.Generator, count: int) -> Self:
        """Random views of ``count`` images."""
        turn = np.radians(draw.uniform(-TURN, TURN, count))
        zoom = 1 + draw.uniform(-ZOOM, ZOOM, count)
        shift = draw.uniform(-2 * SHIFT, 2 * SHIFT, (count, 2))  # the image is 2 wide
        return cls(
            torch.from_numpy(draw.random(count) < 0.5),
            build_maps(turn, zoom, shift),
            torch.from_numpy(1 + draw.uniform(-GAIN, GAIN, (count, 1, 1, 1))).float(),
            torch.from_numpy(draw.uniform(-LIFT, LIFT, (count, 1, 1, 1))).float(),
        )

    def images(self, pictures: Tensor) -> Tensor:
        """uint8 (N, H, W, 3) -> float (N, 3, H, W) in [-1, 1]."""
        images = mirror(to_images(pictures), self.mirrored)
        return (self._resample(images, "bilinear") * self.gain + self.lift).clamp(-1, 1)

    def masks(self, masks: Tensor, partner: Tensor) -> Tensor:
        """Labels, uint8 (N, H, W) -> int64 (N, H, W). ``partner``: label -> its label in the mirrored image."""
        masks = masks.long()
        masks = torch.where(self.mirrored[:, None, None], mirror_masks(masks, partner), masks)
        return self._resample(masks[:, None].float(), "nearest")[:, 0].long()

    def points(self, points: Tensor, size: tuple[int, ...], partner: Tensor) -> Tensor:
        """Points (N, P, 2), x and y in pixels, of images of ``size`` (H, W) -> the same points in their views."""
        points = torch.where(self.mirrored[:, None, None], mirror_points(points, size[1], partner), points)
        scale = points.new_tensor([size[1], size[0]])
        edges = (2 * points + 1) / scale - 1  # pixels -> [-1, 1] across the edges
        edges = (edges - self.place[:, None, :, 2]) @ torch.linalg.inv(self.place[:, :, :2]).mT
        return ((edges + 1) * scale - 1) / 2

    def _resample(self, maps: Tensor, mode: str) -> Tensor:
        grid = functional.affine_grid(self.place, list(maps.shape), align_corners=False)
        return functional.grid_sample(maps, grid, mode=mode, padding_mode="border", align_corners=False)


def mirror_masks(masks: Tensor, partner: Tensor) -> Tensor:
    """Labels (N, H, W) of the mirrored images; labels of the left side become those of the right side."""
    return partner[masks.flip(-1)]


def mirror_points(points: Tensor, width: int, partner: Tensor) -> Tensor:
    """Points (N, P, 2) of the mirrored images, ``width`` pixels wide. Each point takes its partner's place."""
    flipped = torch.stack([width - 1 - points[..., 0], points[..., 1]], -1)
    return flipped[:, partner]
