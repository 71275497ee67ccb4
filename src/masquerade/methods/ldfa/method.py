"""LDFA: the box of the face is drawn by a latent diffusion model."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, PositiveInt

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._inpainting import region
from masquerade.methods.ldfa import LdfaSettings
from masquerade.training.settings import TrainingJob


class LDFA(Method):
    """Draws the box of the face by diffusion. As published, it starts from the noised original face, which leaks.

    Klemp, Rösch, Wagner, Quehl, Lauer 2023, LDFA: Latent Diffusion Face Anonymization for Self-driving Applications,
    CVPR Workshops (arXiv:2302.08931). docs/inpainting.md lists what differs from the paper and its code.
    """

    title = "LDFA"
    paper = "Klemp et al. 2023, LDFA, CVPR Workshops (arXiv:2302.08931)"
    capabilities = Capabilities(trains=True, landmarks=True, deterministic=False)
    architecture = ("size", "latent", "autoencoder.widths", "denoiser.widths")

    Params = LdfaSettings

    class Variant(Settings):
        strength: Annotated[float, Field(gt=0, le=1)]
        """Share of the noise schedule that is run. Below 1 the sampling starts from the unprotected face with noise
        (0.75: the default of the program that the published code calls); at 1 it starts from noise alone, and nothing
        of the face reaches the result."""
        steps: PositiveInt
        """Number of sampling steps of the whole schedule (50: the default of that program)."""

    params: LdfaSettings
    variant: Variant

    def __init__(self, params: LdfaSettings, variant: Variant, resources: Resources):
        from masquerade.methods._inpainting.drawing import Drawing
        from masquerade.methods.ldfa.training import LatentInpainter

        super().__init__(params, variant, resources)
        network = LatentInpainter(params)
        network.strength, network.steps = variant.strength, variant.steps
        self._drawing = Drawing(network, params.size, self.checkpoint)

    @classmethod
    def train(cls, params: LdfaSettings, job: TrainingJob) -> None:
        from masquerade.methods.ldfa import training

        training.train(params, job)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the box of a face is empty or the whole image, or if its landmarks are unknown."""
        side = self.params.size // 2 ** len(self.params.autoencoder.widths)
        shape = (self.params.latent, side, side)
        codes = np.stack([seeding.make_generator(seed, "ldfa", name).standard_normal(shape) for name in faces.ids])
        guide = self._clear(faces) if self.variant.strength < 1 else region.make_empty_guide
        return self._drawing.draw(faces, region.draw_box_masks, guide, codes.astype(np.float32))

    def _clear(self, faces: Faces):
        """The guide that is the unprotected image: the leak of the published program."""
        from masquerade.methods._inpainting.training import average_down

        return lambda _landmarks, size: average_down(faces.images, size)

    def statement(self) -> dict[str, object]:
        if self.variant.strength == 1:
            return {"starts_from": "noise"}
        return {"starts_from": "the unprotected face with noise, as published: the face reaches the network"}
