"""The frozen networks of iFADIT, and their results on the training images, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones import load_backbone
from masquerade.backbones.landmarks.training import to_shares
from masquerade.core.images import to_float
from masquerade.methods.ifadit import IfaditSettings
from masquerade.methods.ifadit.losses import soft_mask
from masquerade.networks.inputs import apply_in_batches, device, place

BATCH = 32  # images at a time

NEEDS = ("generator", "identity", "parsing", "landmarks", "inversion")
"""The backbones of a training."""


def list_tied_backbones(settings: IfaditSettings) -> tuple[str, ...]:
    """The backbones that a checkpoint belongs to."""
    return ("generator", "identity", "parsing", *(("inversion",) if settings.encoder.kind == "inversion" else ()))


class FrozenNetworks:
    """The frozen backbones ``names``, as attributes by role: ``generator``, ``identity``, ``parsing``, ...

    ``region``: the part of an image that is not background (`losses.REGIONS`).
    """

    generator: Any
    identity: Any
    parsing: Any
    landmarks: Any
    inversion: Any = None

    def __init__(self, checkpoints: Mapping[str, Path], names: tuple[str, ...], region: str):
        self.region = region
        self.device = device()
        for name in names:
            setattr(self, name, load_backbone(name, checkpoints))

    def use_span(self, span: nn.Module) -> None:
        """From now on ``identity`` gives the results of ``span`` (N, D) for identity vectors (N, W)."""
        self.identity = place(nn.Sequential(self.identity, span).eval().requires_grad_(False))

    def mask(self, images: Tensor) -> Tensor:
        """M of Eq. 11: images (N, 3, H, W) -> (N, 1, H, W)."""
        return soft_mask(self.parsing.labels(images), self.region)

    def points(self, images: Tensor) -> Tensor:
        """E_LM: images (N, 3, H, W) -> (N, 68, 2) in shares of their sides."""
        return to_shares(self.landmarks(images), tuple(images.shape[-2:]))

    @property
    def mean(self) -> Tensor:
        """The mean code of the generator for each layer, (layers, style)."""
        return self.generator.latent_avg.expand(self.generator.layers, -1).contiguous()


@dataclass(frozen=True)
class Batch:
    """Training images X with E_ID(X), E_LM(X), and the mask M, which is None if the losses do not refine."""

    images: Tensor
    """(N, 3, S, S) in [-1, 1]."""
    identity: Tensor
    """(N, D), unit."""
    points: Tensor
    """(N, 68, 2) in shares of the image's side."""
    mask: Tensor | None
    """(N, 1, S, S) in [0, 1]."""

    def select(self, rows: slice) -> "Batch":
        """Some of its rows."""
        mask = None if self.mask is None else self.mask[rows]
        return Batch(self.images[rows], self.identity[rows], self.points[rows], mask)

    def join(self, other: "Batch") -> "Batch":
        """Its rows, and then those of ``other``."""
        masks = None if self.mask is None or other.mask is None else torch.cat([self.mask, other.mask])
        images, points = torch.cat([self.images, other.images]), torch.cat([self.points, other.points])
        return Batch(images, torch.cat([self.identity, other.identity]), points, masks)


class TrainingImages:
    """Training images, uint8 (M, S, S, 3), their identity vectors (M, D) and points (M, 68, 2), computed once.

    ``masks``: whether batches have masks too. Masks are computed for each batch, because a training may use only a part
    of the images, and all masks may not fit into memory.
    """

    def __init__(self, networks: FrozenNetworks, images: np.ndarray, masks: bool):
        self.networks, self.images, self.masks = networks, images, masks
        self.identity = apply_in_batches(networks.identity, BATCH, images)
        self.points = apply_in_batches(networks.points, BATCH, images)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, rows: np.ndarray) -> Batch:
        """The images ``rows``, int (N,), on the networks' device."""
        positions = torch.from_numpy(rows)
        images = torch.from_numpy(to_float(self.images[rows])).to(device())
        identity, points = self.identity[positions].to(device()), self.points[positions].to(device())
        return Batch(images, identity, points, self.networks.mask(images) if self.masks else None)
