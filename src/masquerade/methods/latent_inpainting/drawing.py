"""Drawing a face into a hidden region by a frozen generator, whose latent code is optimized on what is around."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from masquerade.backbones import load_backbone
from masquerade.backbones.inversion.inverter import refine
from masquerade.backbones.landmarks.training import to_shares
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.methods import _region
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.drawing import OfLandmarks
from masquerade.methods.latent.space import LatentSpace
from masquerade.methods.latent_inpainting import LatentInpaintingSettings
from masquerade.networks.inputs import apply_in_batches
from masquerade.networks.w_space import PNSpace

BATCH = 32  # images at a time
FADE = 0.06  # share of the side over which the drawing fades into the surroundings, outside of the hidden region


class LatentDrawing:
    """Continues the surroundings of a hidden face with a frozen generator. Nothing is trained.

    The generator's face of a style fills the hidden region. The inversion's encoder gives the code of that image.
    The code is then optimized on the surroundings alone (Abdal et al. 2020, arXiv:1911.11544), and on the points
    of the ``guide``, (K, 68) weights of the 68 landmarks. Raises CheckpointError if a network does not fit.
    """

    def __init__(self, backbones: Mapping[str, Path], settings: LatentInpaintingSettings, guide: np.ndarray):
        self._space = LatentSpace({role: backbones[role] for role in ("generator", "inversion")})
        self._settings = settings
        self._codes_of_w = PNSpace.of(self._space.generator)
        self._landmarks = load_backbone("landmarks", backbones)
        self._guide = torch.from_numpy(guide).float().to(self._space.device)

    @property
    def style_width(self) -> int:
        """Random numbers of a style."""
        return self._space.generator.style_width

    def draw(self, faces: Faces, masks: OfLandmarks, normal: np.ndarray) -> np.ndarray:
        """The images (N, 3, S, S) with a region drawn anew, which fades into what is around it.

        ``masks`` computes the region, bool (N, S, S), from landmarks (N, 68, 2) and S. ``normal``: float32 (N,
        `style_width`), random numbers of each style. Raises PictureError if landmarks are unknown, if a region is empty
        or the whole image, or if the generator does not reach what is around it.
        """
        self._space.check_size(faces.images)
        _region.find_boxes(faces)  # refuses faces without landmarks
        size = self._space.generator.size
        places = masks(faces.landmarks, size)
        region.check_masks(faces, places)
        hidden = np.where(places[:, None], 0.0, faces.images).astype(np.float32)  # the face is gone from here on
        around = (~places[:, None]).astype(np.float32)
        points = ((faces.landmarks + 0.5) / size).astype(np.float32)
        codes = apply_in_batches(self._optimize_codes, BATCH, hidden, around, points, normal)
        generated = self._space.draw(codes).numpy()
        if not self._space.inverter.reaches(hidden, (generated * around).astype(np.float32)).all():
            raise PictureError("the generator does not reach what is around the face")
        return region.blend(faces.images, generated, compute_fading(places))

    def _optimize_codes(self, hidden: Tensor, around: Tensor, points: Tensor, normal: Tensor) -> Tensor:
        """W+ (N, layers, style) of images with these surroundings."""
        generator = self._space.generator
        styles = generator.broadcast(generator.truncate(generator.map(normal), self._settings.share))
        filled = hidden + generator.synthesize(styles).clamp(-1, 1) * (1 - around)
        codes = self._space.inverter(filled)
        guided = partial(self._guide_error, points=self._guide @ points)
        return refine(codes, hidden, generator, self._codes_of_w, self._settings, around, guided)

    def _guide_error(self, images: Tensor, rows: slice, points: Tensor) -> Tensor:
        """The error of the points of images: the mean square of their distance in sides, weighted, (N,)."""
        landmarks = to_shares(self._landmarks(images), tuple(images.shape[-2:]))
        return self._settings.points * (self._guide @ landmarks - points[rows]).square().sum(2).mean(1)


def compute_fading(places: np.ndarray) -> np.ndarray:
    """The share of the drawing in each pixel: 1 in the regions, bool (N, S, S), falling to 0 outside of them."""
    away = np.stack([distance_transform_edt(~place) for place in places]) / (FADE * places.shape[-1])
    return (0.5 + 0.5 * np.cos(np.pi * np.clip(away, 0, 1))).astype(np.float32)
