"""The base classes of the evaluators: with a network trained here (backbones.smk), or with an official weight file."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import AT_ONCE, apply_in_batches, device, fold_batch_norms, place, to_pixels

if TYPE_CHECKING:
    import torch


class BatchedJudge(Judge):
    """Runs its networks on ``at_once`` images at a time: `_prepare` makes the input, `_compute` the quantities."""

    at_once: int = AT_ONCE

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return apply_in_batches(self._measure, self.at_once, images, as_arrays=True)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """The quantities of a few images."""
        import torch

        quantities = self._compute(torch.as_tensor(self._prepare(images)).to(device()))
        return {quantity: values.cpu().numpy() for quantity, values in quantities.items()}

    def _prepare(self, images: np.ndarray) -> "np.ndarray | torch.Tensor":
        """The input of the network from images, float32 (N, 3, H, W) in [-1, 1]: the images as they are."""
        return images

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        """The quantities, one row an image, from the input of the network."""
        raise NotImplementedError


class TrainedJudge(BatchedJudge):
    """Loads the backbone in ``needs`` as ``_network``, with folded batch normalizations.

    Preprocessing: none beyond the image contract. The backbone takes RGB in [-1, 1] at any size and resizes it.
    Raises CheckpointError if the checkpoint of the backbone is not given.
    """

    needs: ClassVar[tuple[str]]
    packages = ("torch",)
    at_once = 32
    """These networks are small, and most of a small batch's time would be spent on calls."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (name,) = self.needs
        if name not in backbones:
            raise CheckpointError(f"The judge '{name}' needs the checkpoint of the backbone '{name}': build it first.")
        self._network = place(fold_batch_norms(discovery.load("backbones", name).load(backbones[name])))


WHOLE = 256
"""Side in pixels of the aligned (FFHQ-style) image to which the crops refer."""
ARCFACE_CROP = (32, 35, 220, 223)
"""The crop in which ArcFace's five points put a face: FALCO's and e4e's published code, for images of 256."""
MTCNN_CROP = (61, 60, 192, 229)
"""The box of MTCNN for an aligned face, which facenet-pytorch crops without a margin: the mean over 192 drawn faces and
one photograph. It is fixed, because MTCNN does not detect every face."""


class PublishedJudge(BatchedJudge):
    """Loads the file of the one role in ``assets`` as ``_network``.

    Raises CheckpointError, which says what to do, if the file is missing, altered, or without the published tensors.
    """

    assets: ClassVar[tuple[str]]

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (role,) = self.assets
        self._network = place(self._build(assets.check_asset(role)))

    @abstractmethod
    def _build(self, path: Path) -> "torch.nn.Module":
        """The network with the weights of the file at ``path``, loaded strictly, frozen."""


def cut(images: np.ndarray, crop: tuple[int, int, int, int], side: int) -> np.ndarray:
    """float32 (N, 3, H, W) in [-1, 1] -> uint8 RGB (N, side, side, 3): the ``crop`` of the images at 256 pixels.

    ``crop``: left, top, right, bottom. It is reduced by area or enlarged by cubic interpolation.
    """
    import cv2

    left, top, right, bottom = crop
    flag = cv2.INTER_AREA if side < min(right - left, bottom - top) else cv2.INTER_CUBIC
    return np.stack(
        [
            cv2.resize(picture[top:bottom, left:right], (side, side), interpolation=flag)
            for picture in to_pixels(images, WHOLE)
        ]
    )
