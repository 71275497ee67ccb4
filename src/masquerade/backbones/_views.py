"""Code that parsing and landmarks share: augmented views of pictures with their labels or points, and the training."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core import seeding
from masquerade.networks import deterministic
from masquerade.training.optimizers import AdamOptions, Optimizers, warmup_cosine_share

TURN, ZOOM, SHIFT = 5.0, 0.05, 0.04
"""Largest rotation in degrees, largest change of the scale as a share, largest shift as a share of the side."""
GAIN, LIFT = 0.2, 0.15
"""Largest change of the contrast as a share, and of the brightness on the scale [-1, 1]."""
BETAS = (0.9, 0.999)
"""beta 1 and beta 2 of AdamW: the usual values."""


def resized(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """(N, C, H, W) -> (N, C, *size), bilinear and antialiased; unchanged if it has that size.

    Raises ValueError if the tensor is not a batch of pictures.
    """
    if images.ndim != 4 or not images.is_floating_point():
        raise ValueError(
            f"{tuple(images.shape)} {images.dtype}: pictures are float (N, 3, H, W) in [-1, 1]. Convert them first."
        )
    if images.shape[-2:] == size:
        return images
    return deterministic.resize(images, size)


@dataclass(frozen=True)
class Views:
    """The augmentation of each picture of a batch: mirrored or not, then turned, scaled, shifted, brighter or darker.

    ``mirrored`` bool (N,); ``place`` (N, 2, 3): the affine map from points of the view to points of the picture, both
    in [-1, 1] from edge to edge; ``gain`` and ``lift`` (N, 1, 1, 1). Labels and points get the view of their picture.
    """

    mirrored: Tensor
    place: Tensor
    gain: Tensor
    lift: Tensor

    @classmethod
    def sampled(cls, draw: np.random.Generator, count: int) -> Self:
        """Random views of ``count`` pictures."""
        turn = np.radians(draw.uniform(-TURN, TURN, count))
        zoom = 1 + draw.uniform(-ZOOM, ZOOM, count)
        shift = draw.uniform(-2 * SHIFT, 2 * SHIFT, (count, 2))  # the picture is 2 wide
        c, s = zoom * np.cos(turn), zoom * np.sin(turn)
        place = np.stack([np.stack([c, -s, shift[:, 0]], 1), np.stack([s, c, shift[:, 1]], 1)], 1)
        return cls(
            torch.from_numpy(draw.random(count) < 0.5),
            torch.from_numpy(place).float(),
            torch.from_numpy(1 + draw.uniform(-GAIN, GAIN, (count, 1, 1, 1))).float(),
            torch.from_numpy(draw.uniform(-LIFT, LIFT, (count, 1, 1, 1))).float(),
        )

    def images(self, pictures: Tensor) -> Tensor:
        """uint8 (N, H, W, 3) -> float (N, 3, H, W) in [-1, 1]."""
        images = pictures.permute(0, 3, 1, 2).float() / 127.5 - 1.0
        images = torch.where(self.mirrored[:, None, None, None], images.flip(-1), images)
        return (self._resample(images, "bilinear") * self.gain + self.lift).clamp(-1, 1)

    def masks(self, masks: Tensor, partner: Tensor) -> Tensor:
        """Labels, uint8 (N, H, W) -> int64 (N, H, W). ``partner``: label -> its label in the mirrored picture."""
        masks = masks.long()
        masks = torch.where(self.mirrored[:, None, None], mirrored_masks(masks, partner), masks)
        return self._resample(masks[:, None].float(), "nearest")[:, 0].long()

    def points(self, points: Tensor, size: tuple[int, ...], partner: Tensor) -> Tensor:
        """Points (N, P, 2), x and y in pixels, of pictures of ``size`` (H, W) -> the same points in their views."""
        points = torch.where(self.mirrored[:, None, None], mirrored_points(points, size[1], partner), points)
        scale = points.new_tensor([size[1], size[0]])
        edges = (2 * points + 1) / scale - 1  # pixels -> [-1, 1] across the edges
        edges = (edges - self.place[:, None, :, 2]) @ torch.linalg.inv(self.place[:, :, :2]).mT
        return ((edges + 1) * scale - 1) / 2

    def _resample(self, maps: Tensor, mode: str) -> Tensor:
        grid = functional.affine_grid(self.place, list(maps.shape), align_corners=False)
        return functional.grid_sample(maps, grid, mode=mode, padding_mode="border", align_corners=False)


def mirrored_masks(masks: Tensor, partner: Tensor) -> Tensor:
    """Labels (N, H, W) of the mirrored pictures; labels of the left side become those of the right side."""
    return partner[masks.flip(-1)]


def mirrored_points(points: Tensor, width: int, partner: Tensor) -> Tensor:
    """Points (N, P, 2) of the mirrored pictures, ``width`` pixels wide. Each point takes its partner's place."""
    flipped = torch.stack([width - 1 - points[..., 0], points[..., 1]], -1)
    return flipped[:, partner]


class DenseTask:
    """Training on views of pictures and their targets, with AdamW, or Muon for the kernels. The rate rises, then falls.

    A subclass defines ``losses``. ``params`` are `RisingUpdates`.
    """

    def __init__(self, network: nn.Module, params, pictures: np.ndarray, targets: np.ndarray, seed: int):
        self.network, self.params, self.seed = network.train(), params, seed
        self.device = next(network.parameters()).device
        self.pictures, self.targets = torch.from_numpy(pictures), torch.from_numpy(targets)
        self.modules = {"network": network}
        rates = params.learning_rate, params.small_scale.kernel_rate
        adam = AdamOptions(decay=params.weight_decay)
        self.optimizers = {"all": Optimizers.with_kernels(self.modules, *rates, BETAS, adam=adam)}

    def losses(self, views: Views, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The losses by name; "loss" is the one that is minimized."""
        raise NotImplementedError

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses and the learning rate."""
        draw = seeding.make_generator(self.seed, "views", step)
        chosen = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        views = Views.sampled(draw, len(chosen))
        losses = self.losses(views, self.pictures[chosen], self.targets[chosen])
        share = warmup_cosine_share(step, self.params.steps)
        self.optimizers["all"].descend(losses["loss"], share)
        return {name: value.item() for name, value in losses.items()} | {
            "learning_rate": self.params.learning_rate * share
        }
