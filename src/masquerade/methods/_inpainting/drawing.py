"""A trained generator of an inpainter, and the way from a picture to the drawn picture."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.methods import _region
from masquerade.methods._inpainting import region
from masquerade.networks.inputs import device, place
from masquerade.training import checkpoints

BATCH = 32  # pictures at a time


class Drawing:
    """The generator of a checkpoint, frozen. It draws ``size`` pixels a side; larger pictures get its enlarged drawing.

    Raises CheckpointError if the checkpoint does not fit.
    """

    def __init__(self, network: nn.Module, size: int, checkpoint: Path):
        self.size = size
        tensors, _ = checkpoints.load_checkpoint(checkpoint)
        checkpoints.load_into(network, tensors.get("network", {}), checkpoint)
        self._network = place(network.eval().requires_grad_(False))

    def box_masks(self, faces: Faces) -> np.ndarray:
        """The region of the box of each face, bool (N, H, W). Raises PictureError if it is empty or everything."""
        masks = region.box_masks(_region.boxes(faces), faces.images.shape[-1])
        region.check(faces, masks)
        return masks

    def drawn(self, images: np.ndarray, masks: np.ndarray, guide: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The pictures (N, 3, H, W) with a drawn region where ``masks`` bool (N, H, W) is true.

        ``guide`` (N, ...) and ``codes`` (N, ...) go to the generator as they are. Raises PictureError if the pictures
        are smaller than the network's.
        """
        height, width = images.shape[-2:]
        if height != width or width % self.size:
            raise PictureError(
                f"is {width} x {height} pixels; this network takes squares of {self.size} pixels or a multiple of it"
            )
        hidden = np.where(masks[:, None], 0.0, images).astype(np.float32)  # the face is gone from here on
        parts = zip(*(torch.from_numpy(array).split(BATCH) for array in (hidden, guide, codes)), strict=True)
        with torch.inference_mode():
            drawn = torch.cat([self._drawn(*(part.to(device()) for part in some)).cpu() for some in parts])
        return region.pasted(images, drawn.numpy(), masks)

    def _drawn(self, hidden: Tensor, guide: Tensor, codes: Tensor) -> Tensor:
        side = hidden.shape[-1]
        if side != self.size:
            hidden = interpolate(hidden, size=(self.size,) * 2, mode="area")
        made = self._network(hidden, guide, codes)
        return made if side == self.size else interpolate(made, size=(side,) * 2, mode="bicubic", antialias=True)
