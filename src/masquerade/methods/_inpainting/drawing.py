"""Drawing a face into a hidden region by an inpainter's trained generator."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.methods import _region
from masquerade.methods._inpainting import region
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place
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
