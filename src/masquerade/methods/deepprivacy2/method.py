"""DeepPrivacy2: a face is drawn anew from its surroundings and a random style, without keypoints."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.settings import (
    LATENT_NEEDS,
    LATENT_STAND_IN,
)
from masquerade.methods.deepprivacy2 import DeepPrivacy2Settings
from masquerade.training.settings import TrainingJob


class DeepPrivacy2(Method):
    """Hides the box of the face and draws another face into it, from what is around it and a random style.

    Hukkelås, Lindseth 2023, DeepPrivacy2: Towards Realistic Full-Body Anonymization, WACV
    (doi:10.1109/WACV56688.2023.00138); its model of faces. The face itself never reaches the network.
    docs/deepprivacy2.md lists what differs from the paper and its code.
    """

    title = "DeepPrivacy2"
    paper = "Hukkelås, Lindseth 2023, DeepPrivacy2, WACV (doi:10.1109/WACV56688.2023.00138)"
    capabilities = Capabilities(trains=True, landmarks=True, sees_face=False)
    official = ("deepprivacy2_fdf256", "deepprivacy2_fdf128")
    architecture = ("generator",)

    Params = DeepPrivacy2Settings

    class Variant(Settings):
        truncation: Annotated[float, Field(ge=0, le=1)]
        """Share of the way from the mean style to the random one. 0: the mean, as the published program has it, so one
        context gives one face."""

    params: DeepPrivacy2Settings
    variant: Variant

    def __init__(self, params: DeepPrivacy2Settings, variant: Variant, resources: Resources):
        from masquerade.methods._inpainting.drawing import Drawing
        from masquerade.methods._inpainting.latent import LatentDrawing
        from masquerade.methods.deepprivacy2.network import build_generator

        super().__init__(params, variant, resources)
        if params.latent is not None:
            self._latent = LatentDrawing(resources.backbones, params.latent)
            return
        network = build_generator(params)
        network.truncation = variant.truncation
        self._drawing = Drawing(network, params.generator.size, self.checkpoint)

    @classmethod
    def trains(cls, params: DeepPrivacy2Settings) -> bool:
        return params.latent is None

    @classmethod
    def list_backbones(cls, params: DeepPrivacy2Settings) -> tuple[str, ...]:
        return () if params.latent is None else LATENT_NEEDS

    @classmethod
    def latent_stand_in(cls, params: DeepPrivacy2Settings) -> str:
        return "" if params.latent is None else LATENT_STAND_IN

    @classmethod
    def train(cls, params: DeepPrivacy2Settings, job: TrainingJob) -> None:
        from masquerade.methods.deepprivacy2 import training

        training.train(params, job)

    @classmethod
    def load_official(cls, params: DeepPrivacy2Settings, path: Path):
        from masquerade.methods.deepprivacy2.network import load_official

        return load_official(params, path)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the box of a face is empty or the whole picture, or if its landmarks are unknown.

        With `latent`, also if the generator does not reach what is around a face.
        """
        self._seed = seed  # `otherwise` goes on from it
        latent = self.params.latent is not None
        width = self._latent.style_width if latent else self.params.generator.style
        normal = [seeding.make_generator(seed, "deepprivacy2", name).standard_normal(width) for name in faces.ids]
        codes = np.stack(normal).astype(np.float32)
        if latent:
            return self._latent.drawn(faces, region.box_masks, codes, self.variant.truncation)
        return self._drawing.drawn(faces, region.box_masks, region.nothing, codes)

    def resample(self, faces: Faces, number: int) -> np.ndarray | None:
        """With another style of the generator of faces (ours)."""
        if self.params.latent is None or not self.variant.truncation:
            return None
        return self.anonymize(faces, seeding.derive_seed(self._seed, "otherwise", number))
