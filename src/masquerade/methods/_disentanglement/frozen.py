"""The trained networks of Stage I, loaded for a method."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, PictureError
from masquerade.methods._disentanglement.network import Disentanglement
from masquerade.methods._disentanglement.settings import DisentanglementSettings
from masquerade.networks.inputs import device, place
from masquerade.training import checkpoints


class FrozenStageOne:
    """Identity encoder, attribute encoder and generator of a checkpoint. ``rest``: its further parts, by name.

    Raises CheckpointError if it was trained with another identity encoder, or does not fit ``settings``.
    """

    def __init__(self, settings: DisentanglementSettings, checkpoint: Path, identity: Path):
        self._batch = settings.batch  # a batch of the training fits into memory
        self._identity = place(discovery.load("backbones", "identity").load(identity))
        tensors, facts = checkpoints.load_checkpoint(checkpoint)
        if facts.get("identity") != fingerprints.md5(identity):
            raise CheckpointError(
                f"{checkpoint} was trained with another identity encoder than {identity}. Its generator takes the "
                "vectors of that encoder only. Use that encoder, or train again."
            )
        self.network = Disentanglement(settings).eval().requires_grad_(False)
        checkpoints.load_into(self.network, tensors.pop("network", {}), checkpoint)
        place(self.network)
        self.rest = tensors

    def identities(self, images: np.ndarray) -> np.ndarray:
        """Pictures (N, 3, S, S) -> unit vectors, float32 (N, D). Raises PictureError if S is not the network's."""
        self._check_size(images)
        return self._in_parts(self._identity, images).numpy()

    def attributes(self, images: np.ndarray) -> list[Tensor]:
        """Pictures (N, 3, S, S) -> attribute maps, coarse to fine, (N, C_k, S_k, S_k), on the CPU. Raises as above."""
        self._check_size(images)
        with torch.inference_mode():
            parts = [self.network.attributes(torch.from_numpy(part).to(device())) for part in self._split(images)]
        return [torch.cat([part.cpu() for part in maps]) for maps in zip(*parts, strict=True)]

    def fuse(self, vectors: np.ndarray, maps: Sequence[Tensor]) -> np.ndarray:
        """Identity vectors (N, D) and attribute maps -> pictures, float32 (N, 3, S, S) in [-1, 1]."""
        identity, parts = torch.from_numpy(np.asarray(vectors, dtype=np.float32)), []
        with torch.inference_mode():
            for start in range(0, len(vectors), self._batch):
                some = [part[start : start + self._batch].to(device()) for part in (identity, *maps)]
                parts.append(self.network.fuse(some[0], some[1:]).cpu())
        return torch.cat(parts).numpy()

    def _in_parts(self, network, images: np.ndarray) -> Tensor:
        with torch.inference_mode():
            return torch.cat([network(torch.from_numpy(part).to(device())).cpu() for part in self._split(images)])

    def _split(self, images: np.ndarray) -> list[np.ndarray]:
        return [images[start : start + self._batch] for start in range(0, len(images), self._batch)]

    def _check_size(self, images: np.ndarray) -> None:
        height, width = images.shape[-2:]
        if (height, width) != (self.network.size, self.network.size):
            raise PictureError(
                f"is {width} x {height} pixels; this network takes {self.network.size} x {self.network.size}"
            )
