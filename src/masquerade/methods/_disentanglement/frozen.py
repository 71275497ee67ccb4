"""The trained networks of Stage I, loaded for a method."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from masquerade.backbones import loaded
from masquerade.core.images import Faces, check_size
from masquerade.methods import Resources
from masquerade.methods._disentanglement.network import LatentDisentanglement, built
from masquerade.methods._disentanglement.settings import DisentanglementSettings, needed
from masquerade.methods.latent.codes import Codes
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.checkpoints import Saved


class FrozenStageOne:
    """Identity encoder, attribute encoder and generator of a checkpoint. ``rest``: its further parts, by name.

    ``space``: the latent space of a generator in which Stage I works, or None. Raises CheckpointError if it was trained
    with other backbones, or does not fit ``settings``.
    """

    def __init__(self, settings: DisentanglementSettings, resources: Resources):
        self._batch = settings.batch  # a batch of the training fits into memory
        backbones = resources.backbones
        self._identity = loaded("identity", backbones)
        self.space, frozen = None, {}
        if settings.latent is not None:
            self.space = LatentSpace(backbones)
            self._codes = Codes(self.space, resources.latents)
            frozen = {"generator": self.space.generator, "inversion": self.space.inverter}
        assert resources.checkpoint is not None
        saved = Saved(resources.checkpoint, backbones, needed(settings))
        self.network = place(saved.frozen("network", built(settings, frozen)))
        self.rest = saved.tensors

    def identities(self, images: np.ndarray) -> np.ndarray:
        """Pictures (N, 3, S, S) -> unit vectors, float32 (N, D). Raises PictureError if S is not the network's."""
        check_size(images, self.network.size)
        return apply_in_batches(self._identity, self._batch, images).numpy()

    def attributes(self, images: np.ndarray) -> list[Tensor]:
        """Pictures (N, 3, S, S) -> attribute maps, coarse to fine, (N, C_k, S_k, S_k), on the CPU. Raises as above.

        In a latent space: one map, the refined code of the inversion (N, layers, style).
        """
        check_size(images, self.network.size)
        if self.space is not None:
            return self._centered(self.space.invert(images))
        return apply_in_batches(self.network.attributes, self._batch, images)

    def attributes_of(self, faces: Faces) -> list[Tensor]:
        """`attributes` of faces whose codes the pipeline may have. Also raises PictureError for a missed inversion."""
        if self.space is not None:
            return self._centered(self._codes.w_plus(faces))
        return self.attributes(faces.images)

    def _centered(self, codes: Tensor) -> list[Tensor]:
        assert self.space is not None
        return [codes - self.space.generator.latent_avg.cpu()]

    def fuse(self, vectors: np.ndarray, maps: Sequence[Tensor], names: Sequence[str] = ()) -> np.ndarray:
        """Identity vectors (N, D) and attribute maps -> pictures, float32 (N, 3, S, S) in [-1, 1].

        ``names``: of the faces, for pictures at the full size of the generator (`LatentSpace.enlarge`).
        """
        identity = np.asarray(vectors, dtype=np.float32)
        network = self.network
        if isinstance(network, LatentDisentanglement):
            assert self.space is not None
            codes = apply_in_batches(lambda vector, *maps: network.code(vector, maps), self._batch, identity, *maps)
            return self.space.draw(codes, names).numpy()
        return apply_in_batches(lambda vector, *maps: network.fuse(vector, maps), self._batch, identity, *maps).numpy()
