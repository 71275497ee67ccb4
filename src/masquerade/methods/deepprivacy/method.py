"""DeepPrivacy: a face is drawn anew from its surroundings, seven keypoints and a latent code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import NonNegativeFloat

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.method import InpaintingMethod
from masquerade.methods.deepprivacy import DeepPrivacySettings
from masquerade.training.settings import TrainingJob


class DeepPrivacy(InpaintingMethod):
    """Hides the box of the face and draws another face into it, from what is around it and from seven keypoints.

    Hukkelås, Mester, Lindseth 2019, DeepPrivacy: A Generative Adversarial Network for Face Anonymization, ISVC
    (arXiv:1909.04538). The face itself never reaches the network. docs/inpainting.md lists what differs from the
    paper and its code.
    """

    title = "DeepPrivacy"
    paper = "Hukkelås et al. 2019, DeepPrivacy, ISVC (arXiv:1909.04538)"
    capabilities = Capabilities(trains=True, landmarks=True, sees_face=False)
    official = ("deepprivacy_default", "deepprivacy_large")
    architecture = ("widths", "pose", "code")

    Params = DeepPrivacySettings

    class Variant(Settings):
        truncation: NonNegativeFloat
        """Largest magnitude of the numbers of the latent code, which follows from the seed; larger numbers are sampled
        again. At 0 the latent code is 0, as in the published programs, so that one context gives one face."""

    params: DeepPrivacySettings
    variant: Variant

    def build_network(self):
        from masquerade.methods.deepprivacy.training import build_generator

        return build_generator(self.params)

    @classmethod
    def train(cls, params: DeepPrivacySettings, job: TrainingJob) -> None:
        from masquerade.methods.deepprivacy import training

        training.train(params, job)

    @classmethod
    def load_official(cls, params: DeepPrivacySettings, path: Path):
        from masquerade.methods.deepprivacy.training import load_official

        return load_official(params, path)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the box of a face is empty or the whole image, or if its landmarks are unknown."""
        codes = np.stack([self._code(seed, name) for name in faces.ids])
        return self._drawing.draw(faces, region.draw_box_masks, region.select_keypoints, codes)

    def _code(self, seed: int, name: str) -> np.ndarray:
        """The code of an image, float32: normal numbers without those beyond ``truncation``."""
        draw, limit = seeding.make_generator(seed, "deepprivacy", name), self.variant.truncation
        code = np.zeros((self.params.code, 4, 4), dtype=np.float32)
        beyond = np.full(code.shape, limit > 0)
        while beyond.any():
            code[beyond] = draw.standard_normal(beyond.sum(), dtype=np.float32)
            beyond = np.abs(code) > limit
        return code
