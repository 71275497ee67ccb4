"""The networks of Stage I as a method uses them: loaded, frozen, and known to belong together."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masquerade import discovery, lineage, training
from masquerade.disentanglement.network import Disentanglement
from masquerade.disentanglement.settings import DisentanglementSettings
from masquerade.errors import CheckpointError, PictureError


class Frozen:
    """Identity encoder, attribute encoder and generator of a checkpoint; ``rest``: what else the checkpoint holds.

    Raises CheckpointError where it was trained with another identity encoder, or does not fit ``settings``.
    """

    def __init__(self, settings: DisentanglementSettings, checkpoint: Path, identity: Path):
        self._batch = settings.batch  # what fits into memory in training fits here
        self._identity = discovery.load("backbones", "identity").load(identity)
        tensors, facts = training.load_checkpoint(checkpoint)
        if facts.get("identity") != lineage.md5(identity):
            raise CheckpointError(
                f"{checkpoint} was trained with another identity encoder than {identity}: its generator would not "
                "understand these identity vectors."
            )
        self.network = Disentanglement(settings).eval().requires_grad_(False)
        training.load_into(self.network, tensors.pop("network", {}), checkpoint)
        self.rest = tensors

    def identities(self, images: np.ndarray) -> np.ndarray:
        """float32 (N, 3, S, S) -> unit vectors, float32 (N, D). Raises PictureError where S is not the network's."""
        self._check_size(images)
        return self._in_parts(self._identity, images).numpy()

    def attributes(self, images: np.ndarray) -> list[Tensor]:
        """float32 (N, 3, S, S) -> the attribute maps, coarse to fine, (N, C_k, S_k, S_k) each."""
        self._check_size(images)
        with torch.inference_mode():
            parts = [self.network.attributes(torch.from_numpy(part)) for part in self._split(images)]
        return [torch.cat(maps) for maps in zip(*parts, strict=True)]

    def fuse(self, vectors: np.ndarray, maps: Sequence[Tensor]) -> np.ndarray:
        """Identity vectors (N, D) and attribute maps -> pictures, float32 (N, 3, S, S) in [-1, 1]."""
        identity, starts = torch.from_numpy(np.asarray(vectors, dtype=np.float32)), range(0, len(vectors), self._batch)
        with torch.inference_mode():
            parts = [
                self.network.fuse(
                    identity[start : start + self._batch], [of[start : start + self._batch] for of in maps]
                )
                for start in starts
            ]
        return torch.cat(parts).numpy()

    def _in_parts(self, network, images: np.ndarray) -> Tensor:
        with torch.inference_mode():
            return torch.cat([network(torch.from_numpy(part)) for part in self._split(images)])

    def _split(self, images: np.ndarray) -> list[np.ndarray]:
        return [images[start : start + self._batch] for start in range(0, len(images), self._batch)]

    def _check_size(self, images: np.ndarray) -> None:
        height, width = images.shape[-2:]
        if (height, width) != (self.network.size, self.network.size):
            raise PictureError(
                f"is {width} x {height} pixels; this network takes {self.network.size} x {self.network.size}"
            )
