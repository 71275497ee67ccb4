"""The frozen networks of iFADIT, and their results on the training pictures, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones import loaded
from masquerade.backbones.landmarks.training import to_shares
from masquerade.core.images import to_float
from masquerade.methods.ifadit.refinement import soft_mask
from masquerade.methods.ifadit.settings import IfaditSettings
from masquerade.networks.inputs import apply_in_batches, device, place

BATCH = 32  # pictures at a time

NEEDS = ("generator", "identity", "parsing", "landmarks", "inversion")
"""The backbones of a training."""


def tied(settings: IfaditSettings) -> tuple[str, ...]:
    """The backbones that a checkpoint belongs to."""
    return ("generator", "identity", "parsing", *(("inversion",) if settings.encoder.kind == "inversion" else ()))


class FrozenNetworks:
    """The frozen backbones ``names``, as attributes by role: ``generator``, ``identity``, ``parsing``, ...

    ``region``: the part of a picture that is not background (`refinement.REGIONS`).
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
            setattr(self, name, loaded(name, checkpoints))

    def spanned(self, span: nn.Module) -> None:
        """From now on ``identity`` gives the results of ``span`` (N, D) for identity vectors (N, 512)."""
        self.identity = place(nn.Sequential(self.identity, span).eval().requires_grad_(False))

    def mask(self, images: Tensor) -> Tensor:
        """M of Eq. 11: pictures (N, 3, H, W) -> (N, 1, H, W)."""
        return soft_mask(self.parsing.labels(images), self.region)

    def points(self, images: Tensor) -> Tensor:
        """E_LM: pictures (N, 3, H, W) -> (N, 68, 2) in shares of their sides."""
        return to_shares(self.landmarks(images), tuple(images.shape[-2:]))

    @property
    def mean(self) -> Tensor:
        """The mean code of the generator for each layer, (layers, style)."""
        return self.generator.latent_avg.expand(self.generator.layers, -1).contiguous()


@dataclass(frozen=True)
class Batch:
    """Training pictures X with E_ID(X), E_LM(X), and the mask M, which is None if the losses do not refine."""

    images: Tensor
    identity: Tensor
    points: Tensor
    mask: Tensor | None


class TrainingPictures:
    """Training pictures, uint8 (M, S, S, 3), their identity vectors (M, D) and points (M, 68, 2), computed once.

    ``masks``: whether batches have masks too. Masks are computed for each batch, because a training may use only a part
    of the pictures, and all masks may not fit into memory.
    """

    def __init__(self, networks: FrozenNetworks, pictures: np.ndarray, masks: bool):
        self.networks, self.pictures, self.masks = networks, pictures, masks
        self.identity = apply_in_batches(networks.identity, BATCH, pictures)
        self.points = apply_in_batches(networks.points, BATCH, pictures)

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, rows: np.ndarray) -> Batch:
        """The pictures ``rows``, int (N,), on the networks' device."""
        chosen = torch.from_numpy(rows)
        images = torch.from_numpy(to_float(self.pictures[rows])).to(device())
        identity, points = self.identity[chosen].to(device()), self.points[chosen].to(device())
        return Batch(images, identity, points, self.networks.mask(images) if self.masks else None)
