"""MTCNN: a cascade of three convolutional networks that finds faces and five points of each."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.judges import Judge
from masquerade.judges._preparing import load_weights, packaged, pixels
from masquerade.settings import Settings

SIDE = 128  # the last network looks at 48 x 48 pixels of it
LEAST = SIDE // 4  # smallest face: an aligned crop shows one that fills more than half of it
THRESHOLDS = (0.6, 0.7, 0.7)  # of the three networks, and the step between sizes: as published
FACTOR = 0.709


class Mtcnn(Judge):
    """The largest face that passes all three networks.

    Preprocessing: RGB at 128 x 128, 8-bit values; the package's own cascade then scales them to (x - 127.5) / 128.
    ``box``: left, top, right, bottom; ``points``: x, y of left eye, right eye, nose, left and right mouth corner (as
    seen in the picture); pixels of the picture judged. ``probability`` of the last network; it is 0, and box and
    points are NaN, where nothing is detected.
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
        from masquerade import _torchvision

        _torchvision.ensure()
        from facenet_pytorch.models import mtcnn

        networks = (mtcnn.PNet, mtcnn.RNet, mtcnn.ONet)
        self._networks = [
            load_weights(network(pretrained=False), path) for network, path in zip(networks, files, strict=True)
        ]

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import torch
        from facenet_pytorch.models.utils.detect_face import detect_face

        pictures = np.stack(pixels(images, SIDE))
        with torch.inference_mode():
            boxes, points = detect_face(pictures, LEAST, *self._networks, THRESHOLDS, FACTOR, torch.device("cpu"))
        found = {
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
                found["detected"][row] = True
                found["box"][row] = edges[best, :4] * scale
                found["points"][row] = np.asarray(five[best], dtype=np.float32).reshape(-1) * scale
                found["probability"][row] = edges[best, 4]
        return found
