"""The base of the classes of the inpainters. It imports no torch."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.methods import Method, Resources

if TYPE_CHECKING:
    from torch import nn

LATENT_STAND_IN = (
    "a frozen generator continues what is around the face, by optimization of its latent code; nothing of the "
    "published network is trained"
)
"""What `latent` runs in the place of the published inpainters (`Method.latent_stand_in`)."""


class InpaintingMethod(Method):
    """The base of the inpainters: their own network draws the region, or a frozen generator of faces (`latent`)."""

    latent_needs: ClassVar[tuple[str, ...]] = ("generator", "inversion", "landmarks")
    """The backbones of the drawing by the generator of faces."""

    def __init__(self, params: Any, variant: Any, resources: Resources):
        from masquerade.methods._inpainting.drawing import Drawing, LatentDrawing

        super().__init__(params, variant, resources)
        if params.latent is None:
            self._drawing = Drawing(self.build_network(), params.size, self.checkpoint)
        else:
            self._latent = LatentDrawing(resources.backbones, params.latent, self.guide_points())

    def build_network(self) -> "nn.Module":
        """The untrained network, for the checkpoint."""
        raise NotImplementedError

    def guide_points(self) -> np.ndarray | None:
        """(K, 68): the points that guide the generator of faces, as weights of the 68 landmarks; None: no guide."""
        return None

    @classmethod
    def trains(cls, params: Any) -> bool:
        return params.latent is None

    @classmethod
    def list_backbones(cls, params: Any) -> tuple[str, ...]:
        return cls.needs if params.latent is None else cls.latent_needs

    @classmethod
    def latent_stand_in(cls, params: Any) -> str:
        return "" if params.latent is None else LATENT_STAND_IN


class StyledInpaintingMethod(InpaintingMethod):
    """An inpainter that draws a random face of each style, unless the variant's ``truncation`` is 0."""

    _seed: int
    """The seed of the last call of `anonymize`, from which `resample` goes on."""

    def resample(self, faces: Faces, number: int) -> np.ndarray | None:
        """With another style of the generator of faces (ours)."""
        if self.params.latent is None or not self.variant.truncation:
            return None
        return self.anonymize(faces, seeding.derive_seed(self._seed, "otherwise", number))
