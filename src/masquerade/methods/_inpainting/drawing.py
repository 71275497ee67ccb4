"""Drawing a face into a hidden region: by an inpainter's trained generator, or by the frozen generator of faces.

The latter takes the place of an inpainter's own network (ours: docs/inpainting.md).
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor, nn

from masquerade.backbones import load_backbone
from masquerade.backbones.inversion.inverter import refine
from masquerade.backbones.landmarks.training import to_shares
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.methods import _region
from masquerade.methods._inpainting import LatentSettings, region
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.networks.w_space import PNSpace
from masquerade.training.checkpoints import Saved

BATCH = 32  # images at a time
OfLandmarks = Callable[[np.ndarray, int], np.ndarray]
"""Landmarks (N, 68, 2) in pixels of a square, and its side -> masks or guides (N, ...)."""


class Drawing:
    """The generator of a checkpoint, frozen. It draws ``size`` pixels a side; larger images get its enlarged drawing.

    Raises CheckpointError if the checkpoint does not fit.
    """

    def __init__(self, network: nn.Module, size: int, checkpoint: Path):
        self.size = size
        self._network = place(Saved(checkpoint).frozen("network", network))

    def draw(self, faces: Faces, masks: OfLandmarks, guide: OfLandmarks, codes: np.ndarray) -> np.ndarray:
        """The images (N, 3, H, W) with a region drawn anew.

        ``masks`` and ``guide`` compute the region, bool (N, H, W), and the guide, float32 (N, ...), from landmarks
        (N, 68, 2) and the side in pixels. ``codes`` (N, ...). Raises PictureError if landmarks are unknown, if a region
        is empty or the whole image, or if the images have another size than the network's or a multiple of it.
        """
        images, (height, width) = faces.images, faces.images.shape[-2:]
        if height != width or width % self.size:
            raise PictureError(
                f"is {width} x {height} pixels; this network takes squares of {self.size} pixels or a multiple of it"
            )
        _region.find_boxes(faces)  # refuses faces without landmarks
        places = masks(faces.landmarks, width)
        region.check_masks(faces, places)
        hidden = np.where(places[:, None], 0.0, images).astype(np.float32)  # the face is gone from here on
        guides = guide(region.scale_landmarks(faces.landmarks, width, self.size), self.size)
        generated = apply_in_batches(self._draw, BATCH, hidden, places[:, None].astype(np.float32), guides, codes)
        return region.paste(images, generated.numpy(), places)

    def _draw(self, hidden: Tensor, masks: Tensor, guide: Tensor, codes: Tensor) -> Tensor:
        side = hidden.shape[-1]
        if side != self.size:
            hidden, masks = (deterministic.average(part, (self.size,) * 2) for part in (hidden, masks))
        generated = self._network(hidden, masks, guide, codes)
        return generated if side == self.size else deterministic.resize(generated, (side, side), "bicubic")


FADE = 0.06  # share of the side over which the drawing fades into the surroundings, outside of the hidden region


class LatentDrawing:
    """Continues the surroundings of a hidden face with a frozen generator. Nothing is trained.

    The generator's face of a style fills the hidden region. The inversion's encoder gives the code of that image.
    The code is then optimized on the surroundings alone (Abdal et al. 2020, arXiv:1911.11544), and on the points
    of the ``guide``, (K, 68) weights of the 68 landmarks, or None. Raises CheckpointError if a network does not fit.
    """

    def __init__(self, backbones: Mapping[str, Path], settings: LatentSettings, guide: np.ndarray | None = None):
        self._space = LatentSpace({role: backbones[role] for role in ("generator", "inversion")})
        self._settings = settings
        self._codes_of_w = PNSpace.of(self._space.generator)
        self._landmarks = None if guide is None else load_backbone("landmarks", backbones)
        self._guide = None if guide is None else torch.from_numpy(guide).float().to(self._space.device)

    @property
    def style_width(self) -> int:
        """Random numbers of a style."""
        return self._space.generator.style_width

    def draw(self, faces: Faces, masks: OfLandmarks, normal: np.ndarray, share: float = 1.0) -> np.ndarray:
        """The images (N, 3, S, S) with a region drawn anew, which fades into what is around it.

        ``masks`` computes the region, bool (N, S, S), from landmarks (N, 68, 2) and S. ``normal``: float32 (N,
        `style_width`), random numbers of each style. ``share``: of that of the settings; 0: the mean style. Raises
        PictureError if landmarks are unknown, if a region is empty or the whole image, or if the generator does not
        reach what is around it.
        """
        self._space.check_size(faces.images)
        _region.find_boxes(faces)  # refuses faces without landmarks
        size = self._space.generator.size
        places = masks(faces.landmarks, size)
        region.check_masks(faces, places)
        hidden = np.where(places[:, None], 0.0, faces.images).astype(np.float32)  # the face is gone from here on
        around = (~places[:, None]).astype(np.float32)
        points = ((faces.landmarks + 0.5) / size).astype(np.float32)
        codes = apply_in_batches(partial(self._optimize_codes, share=share), BATCH, hidden, around, points, normal)
        generated = self._space.draw(codes).numpy()
        missed = ~torch.from_numpy(self._space.inverter.reaches(hidden, (generated * around).astype(np.float32)))
        if missed.any():  # a tensor: the cost estimate has no values
            raise PictureError("the generator does not reach what is around the face")
        return region.blend(faces.images, generated, compute_fading(places))

    def _optimize_codes(self, hidden: Tensor, around: Tensor, points: Tensor, normal: Tensor, share: float) -> Tensor:
        """W+ (N, layers, style) of images with these surroundings."""
        generator = self._space.generator
        styles = generator.broadcast(generator.truncate(generator.map(normal), share * self._settings.share))
        filled = hidden + generator.synthesize(styles).clamp(-1, 1) * (1 - around)
        codes = self._space.inverter(filled)
        guide, guided = self._guide, None
        if guide is not None:
            guided = partial(self._guide_error, guide=guide, points=guide @ points)
        return refine(codes, hidden, generator, self._codes_of_w, self._settings, around, guided)

    def _guide_error(self, images: Tensor, rows: slice, guide: Tensor, points: Tensor) -> Tensor:
        """The error of the points of images: the mean square of their distance in sides, weighted, (N,)."""
        assert self._landmarks is not None
        landmarks = to_shares(self._landmarks(images), tuple(images.shape[-2:]))
        return self._settings.points * (guide @ landmarks - points[rows]).square().sum(2).mean(1)


def compute_fading(places: np.ndarray) -> np.ndarray:
    """The share of the drawing in each pixel: 1 in the regions, bool (N, S, S), falling to 0 outside of them."""
    away = np.stack([distance_transform_edt(~place) for place in places]) / (FADE * places.shape[-1])
    return (0.5 + 0.5 * np.cos(np.pi * np.clip(away, 0, 1))).astype(np.float32)
