"""Latent inpainting: a frozen generator of faces continues what is around a hidden face."""

from collections.abc import Sequence

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import NoParameters
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._inpainting import region
from masquerade.methods.latent_inpainting import LatentInpaintingSettings


class LatentInpainting(Method):
    """Hides the box of the face and lets a generator of faces continue what is around it, guided by seven keypoints.

    It is ours and no published method: a baseline of what a generator knows without seeing the face. The latent code
    is optimized as in Abdal et al. 2020, Image2StyleGAN++, CVPR (arXiv:1911.11544), on what is around the face alone.
    No pixel of the face reaches the result; its keypoints do (docs/inpainting.md).
    """

    title = "Latent inpainting"
    paper = "none: a frozen generator continues what is around the face (ours)"
    capabilities = Capabilities(landmarks=True, sees_face=False, deterministic=False)
    needs = ("generator", "inversion", "landmarks")

    Params = LatentInpaintingSettings

    params: LatentInpaintingSettings

    _seed: int
    """The seed of the last call of `anonymize`, from which `resample` goes on."""

    def __init__(self, params: LatentInpaintingSettings, variant: NoParameters, resources: Resources):
        from masquerade.methods.latent_inpainting.drawing import LatentDrawing

        super().__init__(params, variant, resources)
        self._drawing = LatentDrawing(resources.backbones, params, region.keypoint_weights())

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the box of a face is empty or the whole image, if its landmarks are unknown, or if the
        generator does not reach what is around the face.
        """
        self._seed = seed
        return self._draw(faces, seed)

    def resample(self, faces: Faces, number: int) -> np.ndarray:
        """With another random style. Raises as `anonymize`."""
        return self._draw(faces, seeding.derive_seed(self._seed, "resample", number))

    def _draw(self, faces: Faces, seed: int) -> np.ndarray:
        draws = [seeding.make_generator(seed, "latent_inpainting", name) for name in faces.ids]
        normal = np.stack([draw.standard_normal(self._drawing.style_width, dtype=np.float32) for draw in draws])
        return self._drawing.draw(faces, region.draw_box_masks, normal)
