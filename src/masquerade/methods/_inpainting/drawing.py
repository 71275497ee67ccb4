"""A trained generator of an inpainter, and the way from a picture to the drawn picture."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.methods import _region
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.region import scaled
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.checkpoints import Saved

BATCH = 32  # pictures at a time
OfLandmarks = Callable[[np.ndarray, int], np.ndarray]
"""Landmarks (N, 68, 2) in pixels of a square, and its side -> masks or guides (N, ...)."""


class Drawing:
    """The generator of a checkpoint, frozen. It draws ``size`` pixels a side; larger pictures get its enlarged drawing.

    Raises CheckpointError if the checkpoint does not fit.
    """

    def __init__(self, network: nn.Module, size: int, checkpoint: Path):
        self.size = size
        self._network = place(Saved(checkpoint).frozen("network", network))

    def drawn(self, faces: Faces, masks: OfLandmarks, guide: OfLandmarks, codes: np.ndarray) -> np.ndarray:
        """The pictures (N, 3, H, W) with a region drawn anew.

        ``masks`` and ``guide`` compute the region, bool (N, H, W), and the guide, float32 (N, ...), from landmarks
        (N, 68, 2) and the side in pixels. ``codes`` (N, ...). Raises PictureError if landmarks are unknown, if a region
        is empty or the whole picture, or if the pictures have another size than the network's or a multiple of it.
        """
        images, (height, width) = faces.images, faces.images.shape[-2:]
        if height != width or width % self.size:
            raise PictureError(
                f"is {width} x {height} pixels; this network takes squares of {self.size} pixels or a multiple of it"
            )
        _region.boxes(faces)  # refuses faces without landmarks
        places = masks(faces.landmarks, width)
        region.check(faces, places)
        hidden = np.where(places[:, None], 0.0, images).astype(np.float32)  # the face is gone from here on
        guides = guide(scaled(faces.landmarks, width, self.size), self.size)
        drawn = apply_in_batches(self._drawn, BATCH, hidden, places[:, None].astype(np.float32), guides, codes)
        return region.pasted(images, drawn.numpy(), places)

    def _drawn(self, hidden: Tensor, masks: Tensor, guide: Tensor, codes: Tensor) -> Tensor:
        side = hidden.shape[-1]
        if side != self.size:
            hidden, masks = (deterministic.averaged(part, (self.size,) * 2) for part in (hidden, masks))
        made = self._network(hidden, masks, guide, codes)
        return made if side == self.size else deterministic.resized(made, (side, side), "bicubic")
