"""The base class of the judges with an official weight file (docs/assets.md), and FaceNet, which two of them share."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from masquerade import assets
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import device, piecewise, pixels, place

if TYPE_CHECKING:
    import torch

WHOLE = 256
"""Side in pixels of the aligned (FFHQ-style) picture to which the crops refer."""
ARCFACE_CROP = (32, 35, 220, 223)
"""The crop in which ArcFace's five points put a face: FALCO's and e4e's published code, for pictures of 256."""
MTCNN_CROP = (61, 60, 192, 229)
"""The box of MTCNN for an aligned face, which facenet-pytorch crops without a margin: the mean over 192 drawn faces and
one photograph. It is fixed, because MTCNN does not detect every face."""


class PublishedJudge(Judge):
    """Loads the file of the one role in ``assets`` and runs its network on few pictures at a time.

    Raises CheckpointError, which says what to do, if the file is missing, altered, or without the published tensors.
    """

    assets: ClassVar[tuple[str]]

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (role,) = self.assets
        self._network = place(self._build(assets.checked(role)))

    @abstractmethod
    def _build(self, path: Path) -> "torch.nn.Module":
        """The network with the weights of the file at ``path``, loaded strictly, frozen."""


class FaceNet(PublishedJudge):
    """``embedding``: unit vectors (512,); compare them by their distance.

    Preprocessing: the crop in which MTCNN detects aligned faces (``MTCNN_CROP``), RGB at 160 x 160, stretched as in
    facenet-pytorch, (x - 127.5) / 128 on 8-bit values. No detector runs, so every face gets a vector.
    """

    packages = ("torch",)
    quantities = {"embedding": (512,)}
    people: ClassVar[int]
    """Number of people in its training set, which are the classes of the last layer of the file."""

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.networks.inception_resnet import InceptionResnetV1
        from masquerade.training import weight_files

        classes = {"logits.": f"the layer of its {self.people} people"}
        weights = weight_files.tensors(weight_files.read(path), path, classes)
        return weight_files.load(InceptionResnetV1(), weights, path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        faces = (cut(images, MTCNN_CROP, 160).astype(np.float32) - 127.5) / 128.0
        vectors = self._network(torch.from_numpy(faces.transpose(0, 3, 1, 2)).to(device()))
        return {"embedding": torch.nn.functional.normalize(vectors).cpu().numpy()}


def cut(images: np.ndarray, crop: tuple[int, int, int, int], side: int) -> np.ndarray:
    """float32 (N, 3, H, W) in [-1, 1] -> uint8 RGB (N, side, side, 3): the ``crop`` of the pictures at 256 pixels.

    ``crop``: left, top, right, bottom. It is reduced by area or enlarged by cubic interpolation.
    """
    import cv2

    left, top, right, bottom = crop
    flag = cv2.INTER_AREA if side < min(right - left, bottom - top) else cv2.INTER_CUBIC
    return np.stack(
        [
            cv2.resize(picture[top:bottom, left:right], (side, side), interpolation=flag)
            for picture in pixels(images, WHOLE)
        ]
    )
