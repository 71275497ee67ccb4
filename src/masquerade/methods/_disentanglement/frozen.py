"""The trained networks of Stage I, loaded for a method."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from masquerade.backbones import loaded
from masquerade.core.images import check_size
from masquerade.methods._disentanglement.network import Disentanglement
from masquerade.methods._disentanglement.settings import DisentanglementSettings
from masquerade.methods._disentanglement.training import TIED
from masquerade.networks.inputs import in_batches, place
from masquerade.training.checkpoints import Saved


class FrozenStageOne:
    """Identity encoder, attribute encoder and generator of a checkpoint. ``rest``: its further parts, by name.

    Raises CheckpointError if it was trained with another identity encoder, or does not fit ``settings``.
    """

    def __init__(self, settings: DisentanglementSettings, checkpoint: Path, backbones: Mapping[str, Path]):
        self._batch = settings.batch  # a batch of the training fits into memory
        self._identity = loaded("identity", backbones)
        saved = Saved(checkpoint, backbones, TIED)
        self.network = place(saved.frozen("network", Disentanglement(settings)))
        self.rest = saved.tensors

    def identities(self, images: np.ndarray) -> np.ndarray:
        """Pictures (N, 3, S, S) -> unit vectors, float32 (N, D). Raises PictureError if S is not the network's."""
        check_size(images, self.network.size)
        return in_batches(self._identity, self._batch, images).numpy()

    def attributes(self, images: np.ndarray) -> list[Tensor]:
        """Pictures (N, 3, S, S) -> attribute maps, coarse to fine, (N, C_k, S_k, S_k), on the CPU. Raises as above."""
        check_size(images, self.network.size)
        return in_batches(self.network.attributes, self._batch, images)

    def fuse(self, vectors: np.ndarray, maps: Sequence[Tensor]) -> np.ndarray:
        """Identity vectors (N, D) and attribute maps -> pictures, float32 (N, 3, S, S) in [-1, 1]."""
        identity = np.asarray(vectors, dtype=np.float32)
        return in_batches(lambda vector, *maps: self.network.fuse(vector, maps), self._batch, identity, *maps).numpy()
