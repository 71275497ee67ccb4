"""dlib's convolutional face detector, which evaluates nothing: it finds the faces of images that no evaluator chose."""

from functools import cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from masquerade.networks.dlib_models import find_model

if TYPE_CHECKING:
    import dlib

NETWORK_SIDE = 128
"""Side in pixels of the images that the detector scans. In images of 128 pixels it found all of 60 generated faces."""


@cache
def load_detector() -> "dlib.cnn_face_detection_model_v1":
    """dlib's convolutional detector (King 2015, arXiv:1502.00046), which also finds faces that turn far aside."""
    import dlib

    return dlib.cnn_face_detection_model_v1(str(find_model("mmod_human_face_detector.dat")))


def detect(picture: np.ndarray) -> np.ndarray:
    """Boxes of the large faces in uint8 (S, S, 3): float64 (N, 4) of left, top, right, bottom in pixels."""
    small = cv2.resize(picture, (NETWORK_SIDE, NETWORK_SIDE), interpolation=cv2.INTER_AREA)
    boxes = [face.rect for face in load_detector()(small, 0)]
    corners = [(box.left(), box.top(), box.right(), box.bottom()) for box in boxes]
    return np.array(corners, dtype=np.float64).reshape(-1, 4) * (picture.shape[0] / NETWORK_SIDE)
