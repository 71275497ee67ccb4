"""The frozen networks of a latent space: generator, inversion and semantics."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from masquerade.backbones import load_backbone
from masquerade.core import fingerprints
from masquerade.core.images import check_size, to_uint8
from masquerade.methods._batches import Remembered
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training.checkpoints import check_backbone

BATCH = 32  # images that are encoded or drawn at a time


class LatentSpace:
    """The ``generator``, ``inverter`` and ``semantics`` of the checkpoints ``backbones``, on the GPU if there is one.

    ``inverter`` and ``semantics`` are None without their checkpoints. Raises CheckpointError if the inversion was
    trained for another generator.
    """

    def __init__(self, backbones: Mapping[str, Path]):
        self.device = device()
        self.generator = load_backbone("generator", backbones)
        self.inverter: Any = load_backbone("inversion", backbones) if "inversion" in backbones else None
        self.semantics: Any = load_backbone("semantics", backbones) if "semantics" in backbones else None
        self.generator_md5 = fingerprints.md5(backbones["generator"])
        self.backbones = backbones
        self._kept: dict[str, Tensor] | None = None
        self._inverted = Remembered(
            lambda images: apply_in_batches(lambda part: self.inverter.invert(part, self.generator), BATCH, images),
            kept=8,
        )
        if self.inverter is not None:
            check_backbone(backbones["inversion"], "generator", self.inverter.generator, backbones["generator"])

    def invert(self, images: np.ndarray) -> Tensor:
        """Images, float32 (N, 3, S, S) -> W+ (N, layers, style), refined, on the CPU. Raises as `check_size`.

        The codes of the last sets are kept: an attacker tries many keys on the same images.
        """
        self.check_size(images)
        return self._inverted(images)

    def encode(self, images: np.ndarray) -> Tensor:
        """The encoder's W+ without refinement: `invert` for trainings, which have thousands of faces."""
        self.check_size(images)
        return apply_in_batches(self.inverter, BATCH, images)

    def reaches(self, images: np.ndarray, codes: Tensor) -> np.ndarray:
        """Whether the generator draws each image from its code, by the inversion's own limit: bool (N,)."""
        if self.inverter.limit is None:
            return np.ones(len(images), dtype=bool)
        return self.inverter.reaches(images, self.draw(codes).numpy())

    def check_size(self, images: np.ndarray) -> None:
        """Raises PictureError if images (N, 3, H, W) do not have the size of the generator's."""
        check_size(images, self.generator.size, "this generator draws")

    def draw(self, codes: Tensor, names: Sequence[str] = ()) -> Tensor:
        """W+ (N, layers, style) -> images (N, 3, S, S) in [-1, 1], on the CPU. ``names``: see `enlarge`."""
        if self._kept is not None:
            self._kept |= dict(zip(names, codes.split(1), strict=False))
        return apply_in_batches(
            lambda part: self.generator.synthesize(part).clamp(-1, 1), self.generator.at_once, codes
        )

    def enlarge(self) -> Callable[[str], np.ndarray] | None:
        """From now on, `draw` keeps the codes with names. The result draws that of a name large: uint8 (L, L, 3).

        Returns None if the generator draws one size alone.
        """
        if not hasattr(self.generator, "synthesize_large"):
            return None
        kept = self._kept = {}

        def large(name: str) -> np.ndarray:
            images = apply_in_batches(lambda part: self.generator.synthesize_large(part).clamp(-1, 1), 1, kept[name])
            return to_uint8(images.numpy())[0]

        return large

    def embed(self, images: Tensor) -> Tensor:
        """Images (N, 3, S, S) -> class-token features (N, D), on the CPU. Faces are paired by them."""
        return apply_in_batches(self.semantics.cls, BATCH, images)
