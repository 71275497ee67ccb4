"""Updates on random batches of images: what the trainings of recognizers, classifiers and parsers share."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.core import seeding
from masquerade.training.optimizers import AdamOptions, Optimizers, compute_warmup_cosine

BETAS = (0.9, 0.999)
"""beta 1 and beta 2 of AdamW: the usual values."""


class BatchTask:
    """Updates on random batches of images, uint8 (M, H, W, 3), and their targets, (M, ...).

    ``stream``: the name of the random numbers of a step. A subclass defines `losses`. ``params`` has ``steps``,
    ``batch`` and ``learning_rate``; without an own `build_optimizers`, it is a `RisingUpdates`.
    """

    stream: ClassVar[str]

    def __init__(
        self, modules: Mapping[str, nn.Module], params: Any, pictures: np.ndarray, targets: np.ndarray, seed: int
    ):
        self.modules, self.params, self.seed = {key: module.train() for key, module in modules.items()}, params, seed
        self.device = next(weight for module in modules.values() for weight in module.parameters()).device
        self.pictures, self.targets = torch.from_numpy(pictures), torch.from_numpy(targets)
        self.optimizers = {"all": self.build_optimizers()}

    def build_optimizers(self) -> Optimizers:
        """AdamW, or Muon for the kernels."""
        adam, kernel_rate = AdamOptions(self.params.weight_decay), self.params.small_scale.kernel_rate
        return Optimizers.with_kernels(self.modules, self.params.learning_rate, kernel_rate, BETAS, adam=adam)

    def compute_share(self, step: int) -> float:
        """The learning rate of a step as a share of the largest one."""
        return compute_warmup_cosine(step, self.params.steps)

    def draw_rows(self, draw: np.random.Generator) -> np.ndarray:
        """The numbers of the images of a batch, int64 (N,)."""
        return draw.integers(0, len(self.pictures), self.params.batch)

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The curves of a batch by name; "loss" is the one that is minimized."""
        raise NotImplementedError

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the curves and the learning rate."""
        draw = seeding.make_generator(self.seed, self.stream, step)
        torch.manual_seed(seeding.derive_seed(self.seed, "dropout", step))
        rows = torch.from_numpy(self.draw_rows(draw))
        losses, share = self.losses(draw, self.pictures[rows], self.targets[rows]), self.compute_share(step)
        self.optimizers["all"].descend(losses["loss"], share)
        rate = self.params.learning_rate * share
        return {name: value.item() for name, value in losses.items()} | {"learning_rate": rate}


def to_images(pictures: Tensor) -> Tensor:
    """uint8 (N, H, W, 3) -> float32 (N, 3, H, W) in [-1, 1]."""
    return pictures.permute(0, 3, 1, 2).float() / 127.5 - 1.0


def mirror(images: Tensor, mirrored: Tensor) -> Tensor:
    """Images (N, C, H, W), of which those are mirrored for which ``mirrored``, bool (N,), is true."""
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


def build_maps(turn: np.ndarray, scale: np.ndarray, shift: np.ndarray, mirror: np.ndarray | float = 1.0) -> Tensor:
    """Affine maps (N, 2, 3) from points of a view to points of its image, both in [-1, 1] from edge to edge.

    A view is turned by radians (N,), scaled by (N,), shifted by (N, 2), and mirrored where ``mirror`` is -1.
    """
    c, s = scale * np.cos(turn), scale * np.sin(turn)
    rows = [[c * mirror, -s, shift[:, 0]], [s * mirror, c, shift[:, 1]]]
    return torch.from_numpy(np.stack([np.stack(row, axis=1) for row in rows], axis=1)).float()


def move(images: Tensor, draw: np.random.Generator, share: float) -> Tensor:
    """All images (N, C, S, S) moved by the same few pixels, at most ``share`` of the side; edges are repeated."""
    size = images.shape[-1]
    reach = max(1, round(share * size))
    across, down = (int(value) for value in draw.integers(-reach, reach + 1, 2))
    images = nn.functional.pad(images, (reach,) * 4, mode="replicate")
    return images[..., reach + down : reach + down + size, reach + across : reach + across + size]
