"""What judges share whose weights are an official file (docs/assets.md), and the recognisers among them."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from masquerade import assets
from masquerade.judges import Judge
from masquerade.judges._preparing import piecewise, pixels
from masquerade.settings import Settings

if TYPE_CHECKING:
    import torch

WHOLE = 256
"""Side in pixels of the aligned (FFHQ-style) picture in which crops are given."""
ARCFACE_CROP = (32, 35, 220, 223)
"""Where a face lies as ArcFace's five points would have it: FALCO's and e4e's published code, for pictures of 256."""
MTCNN_CROP = (61, 60, 192, 229)
"""Where MTCNN draws the box of an aligned face, which facenet-pytorch cuts out without a margin: the mean over 192
drawn faces and one photograph. A box of its own for each face would need one to be found."""


class PublishedJudge(Judge):
    """Opens the file of the one role in ``assets`` and shows its network few pictures at a time.

    Raises CheckpointError, saying what to do, where the file is missing, altered, or does not hold the published
    tensors. ``_build`` makes the network of it.
    """

    assets: ClassVar[tuple[str]]

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (role,) = self.assets
        self._network = self._build(assets.checked(role)).to(device())

    @abstractmethod
    def _build(self, path: Path) -> "torch.nn.Module":
        """The network with the weights of the file at ``path``, strictly loaded, frozen."""


class FaceNet(PublishedJudge):
    """``embedding``: unit vectors (512,); compare them by their distance.

    Preprocessing: the crop where MTCNN finds aligned faces (``MTCNN_CROP``), RGB at 160 x 160, stretched as
    facenet-pytorch does, (x - 127.5) / 128 on 8-bit values. No detector is asked, so every face gets a vector.
    """

    packages = ("torch",)
    quantities = {"embedding": (512,)}
    people: ClassVar[int]
    """Whom it was trained on: the classes of the file's last layer."""

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade import published
        from masquerade.networks.inception_resnet import InceptionResnetV1

        classes = {"logits.": f"the layer of its {self.people} people"}
        weights = published.tensors(published.read(path), path, classes)
        return published.load(InceptionResnetV1(), weights, path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        faces = (cut(images, MTCNN_CROP, 160).astype(np.float32) - 127.5) / 128.0
        found = self._network(torch.from_numpy(faces.transpose(0, 3, 1, 2)).to(device()))
        return {"embedding": torch.nn.functional.normalize(found).cpu().numpy()}


def device() -> "torch.device":
    """Where these networks, which are large, run: a GPU where there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def cut(images: np.ndarray, crop: tuple[int, int, int, int], side: int) -> np.ndarray:
    """float32 (N, 3, H, W) in [-1, 1] -> uint8 RGB (N, side, side, 3): the ``crop`` of the pictures at 256 pixels.

    ``crop``: left, top, right, bottom. Reduced by area, enlarged by cubic interpolation.
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
