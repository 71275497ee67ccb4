"""dlib's HOG face detector."""

import numpy as np

from masquerade.networks.dlib_models import frontal_face_detector
from masquerade.networks.inputs import pixels

SIDE = 178
"""Side in pixels of the pictures that the detector scans. It finds faces of 80 pixels and more, which is 0.45 of the
side; the face in an aligned crop fills more than half of it. 178 is a step of dlib's pyramid from 256 (256 x 25/36), so
the boxes are those of a scan at 256 pixels, in half of its time."""


def detections(images: np.ndarray) -> np.ndarray:
    """Whether the HOG detector detects a face: float32 (N, 3, H, W) in [-1, 1] -> bool (N,)."""
    return np.array(
        [bool(frontal_face_detector().run(picture, 0, 0.0)[0]) for picture in pixels(images, SIDE)], dtype=bool
    )
