"""The frozen networks around what iFADIT trains, and what they say of the training pictures, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from masquerade import discovery
from masquerade.backbones._landmarks import to_shares
from masquerade.identity_flow.refinement import soft_mask
from masquerade.images import to_float

SEEN = 32  # pictures that are looked at at a time

TIED = ("generator", "identity", "parsing")
"""Backbones that a checkpoint means nothing without: its results are made with them."""
NEEDS = (*TIED, "landmarks", "inversion")
"""All that a training needs."""


class World:
    """The frozen backbones named, by role: ``generator``, ``identity``, ``parsing``, ...

    ``region``: what of a picture is not its background (`refinement.REGIONS`).
    """

    def __init__(self, checkpoints: Mapping[str, Path], names: tuple[str, ...], region: str):
        self.region = region
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        for name in names:
            setattr(self, name, self._load(name, checkpoints[name]))

    def _load(self, name: str, checkpoint: Path) -> nn.Module:
        return discovery.load("backbones", name).load(checkpoint).to(self.device)

    def mask(self, images: Tensor) -> Tensor:
        """M of Eq. 11, (N, 1, H, W), of pictures (N, 3, H, W)."""
        return soft_mask(self.parsing.labels(images), self.region)

    def points(self, images: Tensor) -> Tensor:
        """E_LM: pictures -> (N, 68, 2) in shares of their sides."""
        return to_shares(self.landmarks(images), tuple(images.shape[-2:]))

    @property
    def mean(self) -> Tensor:
        """The mean code of the generator for each layer, (layers, style)."""
        return self.generator.latent_avg.expand(self.generator.layers, -1).contiguous()


@dataclass(frozen=True)
class Batch:
    """Training pictures and what is known of them: X, E_ID(X), E_LM(X), and M, which is None where nobody refines."""

    images: Tensor
    identity: Tensor
    points: Tensor
    mask: Tensor | None


class Known:
    """Training pictures, uint8 (M, S, S, 3), their identity vectors (M, 512) and points (M, 68, 2), computed once.

    ``masks``: whether batches have masks too. They are found when they are asked for: a training sees fewer pictures
    than there are, or has no memory for all their masks.
    """

    def __init__(self, world: World, pictures: np.ndarray, masks: bool):
        self.world, self.pictures, self.masks = world, pictures, masks
        found: dict[str, list[Tensor]] = {"identity": [], "points": []}
        with torch.no_grad():
            for start in range(0, len(pictures), SEEN):
                images = torch.from_numpy(to_float(pictures[start : start + SEEN])).to(world.device)
                found["identity"].append(world.identity(images).cpu())
                found["points"].append(world.points(images).cpu())
        self.identity, self.points = torch.cat(found["identity"]), torch.cat(found["points"])

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, rows: np.ndarray) -> Batch:
        device, chosen = self.world.device, torch.from_numpy(rows)
        images = torch.from_numpy(to_float(self.pictures[rows])).to(device)
        identity, points = self.identity[chosen].to(device), self.points[chosen].to(device)
        return Batch(images, identity, points, self.world.mask(images) if self.masks else None)
