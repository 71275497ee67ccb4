"""dlib's HOG face detector."""

import numpy as np

from masquerade.networks.dlib_models import frontal_face_detector
from masquerade.networks.inputs import pixels

SIDE = 256  # HOG needs faces of 80 pixels; in an aligned crop of 256 pixels they are larger


def detections(images: np.ndarray) -> np.ndarray:
    """Whether the HOG detector detects a face: float32 (N, 3, H, W) in [-1, 1] -> bool (N,)."""
    return np.array(
        [bool(frontal_face_detector().run(picture, 0, 0.0)[0]) for picture in pixels(images, SIDE)], dtype=bool
    )
