"""DeepPrivacy2: a face is drawn anew from its surroundings and a random style, without keypoints."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings, Share
from masquerade.methods import Capabilities
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.method import InpaintingMethod
from masquerade.methods.deepprivacy2 import DeepPrivacy2Settings
from masquerade.training.settings import TrainingJob


class DeepPrivacy2(InpaintingMethod):
    """Hides the box of the face and draws another face into it, from what is around it and a random style.

    Hukkelås, Lindseth 2023, DeepPrivacy2: Towards Realistic Full-Body Anonymization, WACV
    (doi:10.1109/WACV56688.2023.00138); its model of faces. The face itself never reaches the network.
    docs/inpainting.md lists what differs from the paper and its code.
    """

    title = "DeepPrivacy2"
    paper = "Hukkelås, Lindseth 2023, DeepPrivacy2, WACV (doi:10.1109/WACV56688.2023.00138)"
    capabilities = Capabilities(trains=True, landmarks=True, sees_face=False)
    official = ("deepprivacy2_fdf256", "deepprivacy2_fdf128")
    architecture = ("generator",)

    Params = DeepPrivacy2Settings

    class Variant(Settings):
        truncation: Share
        """Share of the way from the mean style to the random style. At 0 the mean style is used, as in the published
        program, so that one context gives one face."""

    params: DeepPrivacy2Settings
    variant: Variant

    def build_network(self):
        from masquerade.methods.deepprivacy2.training import build_generator

        network = build_generator(self.params)
        network.truncation = self.variant.truncation
        return network

    @classmethod
    def train(cls, params: DeepPrivacy2Settings, job: TrainingJob) -> None:
        from masquerade.methods.deepprivacy2 import training

        training.train(params, job)

    @classmethod
    def load_official(cls, params: DeepPrivacy2Settings, path: Path):
        from masquerade.methods.deepprivacy2.training import load_official

        return load_official(params, path)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the box of a face is empty or the whole image, or if its landmarks are unknown."""
        width = self.params.generator.style
        normal = [seeding.make_generator(seed, "deepprivacy2", name).standard_normal(width) for name in faces.ids]
        codes = np.stack(normal).astype(np.float32)
        return self._drawing.draw(faces, region.draw_box_masks, region.make_empty_guide, codes)
