"""What parsing and landmarks share: views of pictures with what is known of them, and training on those views."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade import seeding
from masquerade.images import FaceArchive, to_uint8
from masquerade.optimisers import Optimisers, risen

TURN, ZOOM, SHIFT = 5.0, 0.05, 0.04
"""The largest change of a view: degrees, share of the scale, share of the picture's side."""
GAIN, LIFT = 0.2, 0.15
"""The largest change of its contrast (a share) and its brightness (of [-1, 1])."""
BETAS = (0.9, 0.999)
"""Of AdamW: its usual ones."""


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    """(N, C, H, W) -> (N, C, *size), bilinear and antialiased; as it is where it has that size.

    Raises ValueError where the tensor is no batch of pictures.
    """
    if images.ndim != 4 or not images.is_floating_point():
        raise ValueError(f"{tuple(images.shape)} {images.dtype}: pictures are float (N, 3, H, W) in [-1, 1].")
    if images.shape[-2:] == size:
        return images
    return functional.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True)


@dataclass(frozen=True)
class Views:
    """How each picture of a batch is seen: mirrored or not, then turned, scaled and shifted, brighter or darker.

    ``mirrored`` bool (N,); ``place`` (N, 2, 3): where a point of the view lies in the picture, both in [-1, 1] across
    the picture's edges; ``gain`` and ``lift`` (N, 1, 1, 1). What is known of a picture is seen as the picture is.
    """

    mirrored: Tensor
    place: Tensor
    gain: Tensor
    lift: Tensor

    @classmethod
    def drawn(cls, draw: np.random.Generator, count: int) -> "Views":
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
        return (self._sampled(images, "bilinear") * self.gain + self.lift).clamp(-1, 1)

    def masks(self, masks: Tensor, partner: Tensor) -> Tensor:
        """Labels, uint8 (N, H, W) -> int64 (N, H, W). ``partner``: the label that a mirrored picture gives to each."""
        masks = masks.long()
        masks = torch.where(self.mirrored[:, None, None], mirrored_masks(masks, partner), masks)
        return self._sampled(masks[:, None].float(), "nearest")[:, 0].long()

    def points(self, points: Tensor, size: tuple[int, int], partner: Tensor) -> Tensor:
        """Pixel coordinates (N, P, 2) of x, y in pictures of ``size`` (H, W) -> the same in their views."""
        points = torch.where(self.mirrored[:, None, None], mirrored_points(points, size[1], partner), points)
        scale = points.new_tensor([size[1], size[0]])
        edges = (2 * points + 1) / scale - 1  # pixels -> [-1, 1] across the edges
        edges = (edges - self.place[:, None, :, 2]) @ torch.linalg.inv(self.place[:, :, :2]).mT
        return ((edges + 1) * scale - 1) / 2

    def _sampled(self, maps: Tensor, mode: str) -> Tensor:
        grid = functional.affine_grid(self.place, list(maps.shape), align_corners=False)
        return functional.grid_sample(maps, grid, mode=mode, padding_mode="border", align_corners=False)


def mirrored_masks(masks: Tensor, partner: Tensor) -> Tensor:
    """Labels (N, H, W) of the mirrored pictures: what was left is right and is called so."""
    return partner[masks.flip(-1)]


def mirrored_points(points: Tensor, width: int, partner: Tensor) -> Tensor:
    """Pixel coordinates (N, P, 2) in the mirrored pictures, ``width`` pixels wide: each point takes its partner's."""
    flipped = torch.stack([width - 1 - points[..., 0], points[..., 1]], -1)
    return flipped[:, partner]


class DenseTask:
    """Views of pictures against what is known of them, under AdamW, or Muon for the kernels, with a rise and a cosine.

    A subclass says what is lost: ``losses(views, pictures, targets)`` gives the losses by name, "loss" among them.
    ``params`` has ``steps``, ``batch``, ``learning_rate``, ``kernel_rate`` and ``weight_decay``.
    """

    def __init__(self, network: nn.Module, params, pictures: np.ndarray, targets: np.ndarray, seed: int):
        self.network, self.params, self.seed = network.train(), params, seed
        self.device = next(network.parameters()).device
        self.pictures, self.targets = torch.from_numpy(pictures), torch.from_numpy(targets)
        self.modules = {"network": network}
        self._optimisers = Optimisers.with_kernels(
            self.modules, params.learning_rate, params.kernel_rate, BETAS, decay=params.weight_decay
        )
        self.optimisers = self._optimisers.named

    def losses(self, views: Views, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        raise NotImplementedError

    def step(self, step: int) -> dict[str, float]:
        draw = seeding.generator(self.seed, "views", step)
        chosen = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        views = Views.drawn(draw, len(chosen))
        losses = self.losses(views, self.pictures[chosen], self.targets[chosen])
        share = risen(step, self.params.steps)
        self._optimisers.descend(losses["loss"], share)
        return {name: value.item() for name, value in losses.items()} | {
            "learning_rate": self.params.learning_rate * share
        }


def pictures_of(archive: FaceArchive, rows) -> np.ndarray:
    """uint8 (N, H, W, 3) of the given rows."""
    return np.concatenate([to_uint8(part.images) for part in archive.batches(64, rows=rows)])
