"""The frozen networks of the latent world, loaded together and known to belong together."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masquerade import discovery, lineage
from masquerade.errors import CheckpointError, PictureError

BATCH = 32  # pictures that are encoded or drawn at a time


class World:
    """``generator``, ``inverter`` and ``semantics`` of a pipeline, on the GPU where there is one.

    Raises CheckpointError where the inversion was trained for another generator.
    """

    def __init__(self, backbones: Mapping[str, Path]):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.generator = self._load("generator", backbones)
        self.inverter = self._load("inversion", backbones) if "inversion" in backbones else None
        self.semantics = self._load("semantics", backbones) if "semantics" in backbones else None
        self.generator_md5 = lineage.md5(backbones["generator"])
        if self.inverter is not None and self.inverter.generator != self.generator_md5:
            raise CheckpointError(
                f"{backbones['inversion']} was trained for another generator than {backbones['generator']}: its codes "
                "would mean nothing. Train it again (`snakemake` does), or adopt the pair that belongs together."
            )

    def _load(self, name: str, backbones: Mapping[str, Path]):
        return discovery.load("backbones", name).load(backbones[name]).to(self.device)

    @torch.no_grad()
    def invert(self, images: np.ndarray) -> Tensor:
        """Pictures, float32 (N, 3, S, S) -> their W+ (N, layers, style), on the CPU. Raises PictureError for a size."""
        self.check_size(images)
        return self._in_parts(self.inverter, torch.from_numpy(images))

    def check_size(self, images: np.ndarray) -> None:
        """Raises PictureError where pictures (N, 3, H, W) are not of the size of the generator's."""
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
        """Class-token features (N, D) of pictures, on the CPU: what faces are paired by."""
        return self._in_parts(self.semantics.cls, images)

    def _in_parts(self, function, batch: Tensor, size: int = BATCH) -> Tensor:
        return torch.cat([function(part.to(self.device)).cpu() for part in batch.split(size)])
