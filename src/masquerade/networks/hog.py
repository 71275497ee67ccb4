"""dlib's HOG face detector."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.networks.inputs import pixels

if TYPE_CHECKING:
    import dlib

SIDE = 256  # HOG needs faces of 80 pixels; in an aligned crop of 256 pixels they are larger
SAVED = Path(__file__).with_name("frontal_face_detector.svm")
"""dlib's detector as dlib itself saves it. dlib unpacks its built-in copy for half a second in each process, and reads
this file in a millisecond. A test compares the two byte by byte."""


@cache
def detector() -> "dlib.fhog_object_detector":
    """The detector that ``dlib.get_frontal_face_detector`` gives (King 2009)."""
    import dlib

    return dlib.fhog_object_detector(str(SAVED))


def detections(images: np.ndarray) -> np.ndarray:
    """Whether the HOG detector detects a face: float32 (N, 3, H, W) in [-1, 1] -> bool (N,)."""
    return np.array([bool(detector().run(picture, 0, 0.0)[0]) for picture in pixels(images, SIDE)], dtype=bool)
