"""The frozen networks of a latent space: generator, inversion and semantics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, PictureError
from masquerade.networks.inputs import device, place

BATCH = 32  # pictures that are encoded or drawn at a time


class LatentSpace:
    """The ``generator``, ``inverter`` and ``semantics`` of the checkpoints ``backbones``, on the GPU if there is one.

    ``inverter`` and ``semantics`` are None without their checkpoints. Raises CheckpointError if the inversion was
    trained for another generator.
    """

    def __init__(self, backbones: Mapping[str, Path]):
        self.device = device()
        self.generator = self._load("generator", backbones)
        self.inverter: Any = self._load("inversion", backbones) if "inversion" in backbones else None
        self.semantics: Any = self._load("semantics", backbones) if "semantics" in backbones else None
        self.generator_md5 = fingerprints.md5(backbones["generator"])
        if self.inverter is not None and self.inverter.generator != self.generator_md5:
            raise CheckpointError(
                f"{backbones['inversion']} was trained for another generator than {backbones['generator']}. Its codes "
                "are for that generator only. Train it again (`snakemake` does so), or adopt a pair that fits."
            )

    def _load(self, name: str, backbones: Mapping[str, Path]) -> Any:
        return place(discovery.load("backbones", name).load(backbones[name]))

    @torch.no_grad()
    def invert(self, images: np.ndarray) -> Tensor:
        """Pictures, float32 (N, 3, S, S) -> W+ (N, layers, style), on the CPU. Raises as `check_size`."""
        self.check_size(images)
        return self._in_parts(self.inverter, torch.from_numpy(images))

    def check_size(self, images: np.ndarray) -> None:
        """Raises PictureError if pictures (N, 3, H, W) do not have the size of the generator's."""
        height, width = images.shape[-2:]
        size = self.generator.size
        if (height, width) != (size, size):
            raise PictureError(f"is {width} x {height} pixels; this generator draws {size} x {size}")

    @torch.no_grad()
    def draw(self, codes: Tensor) -> Tensor:
        """W+ (N, layers, style) -> pictures (N, 3, S, S) in [-1, 1], on the CPU."""
        return self._in_parts(lambda part: self.generator.synthesize(part).clamp(-1, 1), codes, self.generator.at_once)

    @torch.no_grad()
    def describe(self, images: Tensor) -> Tensor:
        """Pictures (N, 3, S, S) -> class-token features (N, D), on the CPU. Faces are paired by them."""
        return self._in_parts(self.semantics.cls, images)

    def _in_parts(self, function, batch: Tensor, size: int = BATCH) -> Tensor:
        return torch.cat([function(part.to(self.device)).cpu() for part in batch.split(size)])
