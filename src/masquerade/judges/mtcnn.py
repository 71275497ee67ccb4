"""MTCNN: a cascade of three convolutional networks that detects faces and five points of each."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.assets.packaged import packaged
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import device, load_weights, piecewise, pixels, place

SIDE = 128  # pixels; the input of the last network is 48 x 48
LEAST = 3 * SIDE // 8  # side of the smallest face: the face in an aligned crop fills more than half of it
AT_ONCE = 16  # pictures in a batch: more take longer, where freed memory goes back to the kernel
THRESHOLDS = (0.6, 0.7, 0.7)  # of the three networks, as published
FACTOR = 0.709  # from one size of the picture to the next, as published


class Mtcnn(Judge):
    """The largest face that all three networks accept.

    Preprocessing: 8-bit RGB at 128 x 128; the cascade of the package scales it to (x - 127.5) / 128.
    ``box``: left, top, right, bottom; ``points``: x, y of left eye, right eye, nose, left and right mouth corner (left
    and right of the picture); both in pixels of the input picture. ``probability``: of the last network. If nothing is
    detected, it is 0, and box and points are NaN.
    """

    title = "MTCNN"
    source = "Zhang et al. 2016, arXiv:1604.02878; weights of facenet-pytorch (MIT)"
    packages = ("facenet-pytorch", "torch")
    quantities = {"detected": (), "box": (4,), "points": (10,), "probability": ()}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        files = [
            packaged("facenet_pytorch", "data", f"{name}.pt", install="facenet-pytorch")
            for name in ("pnet", "rnet", "onet")
        ]
        from masquerade.networks import torchvision_internals

        torchvision_internals.ensure()
        from facenet_pytorch.models import mtcnn

        networks = (mtcnn.PNet, mtcnn.RNet, mtcnn.ONet)
        self._networks = [
            place(load_weights(network(pretrained=False), path)) for network, path in zip(networks, files, strict=True)
        ]

    def _detect(self, pictures: np.ndarray, least: int) -> tuple:
        """Boxes and points of each picture, uint8 (N, H, W, 3); ``least``: side of the smallest face in pixels."""
        import torch
        from facenet_pytorch.models.utils.detect_face import detect_face

        with torch.inference_mode():
            return detect_face(pictures, least, *self._networks, THRESHOLDS, FACTOR, device())

    def faces(self, photograph: np.ndarray, least: int, probability: float) -> np.ndarray:
        """Boxes of all faces in a photograph, uint8 (H, W, 3): float32 (N, 4) of left, top, right, bottom in pixels.

        ``least``: side of the smallest face in pixels. ``probability``: the least that the last network must give.
        """
        boxes = np.asarray(self._detect(photograph[None], least)[0][0], dtype=np.float32).reshape(-1, 5)
        return boxes[boxes[:, 4] >= probability, :4]

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images, at_once=AT_ONCE)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        boxes, points = self._detect(np.stack(pixels(images, SIDE)), LEAST)
        quantities = {
            "detected": np.zeros(len(images), dtype=bool),
            "box": np.full((len(images), 4), np.nan, dtype=np.float32),
            "points": np.full((len(images), 10), np.nan, dtype=np.float32),
            "probability": np.zeros(len(images), dtype=np.float32),
        }
        scale = images.shape[-1] / SIDE
        for row, (candidates, five) in enumerate(zip(boxes, points, strict=True)):
            if len(candidates):
                edges = np.asarray(candidates, dtype=np.float32)
                best = int(np.argmax((edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])))
                quantities["detected"][row] = True
                quantities["box"][row] = edges[best, :4] * scale
                quantities["points"][row] = np.asarray(five[best], dtype=np.float32).reshape(-1) * scale
                quantities["probability"][row] = edges[best, 4]
        return quantities
