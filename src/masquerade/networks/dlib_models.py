"""dlib's face detector and landmark predictor. Each is loaded once in a process; the fork server loads them for all
jobs.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.networks.inputs import to_pixels

if TYPE_CHECKING:
    import dlib

RECOGNIZER = "dlib_face_recognition_resnet_model_v1.dat"


def find_model(name: str) -> Path:
    """A file of the package face-recognition-models. Raises MasqueradeError if the package is not installed."""
    from masquerade.assets.packaged import packaged

    return packaged("face_recognition_models", "models", name, install="face-recognition-models")


@cache
def load_face_detector() -> "dlib.fhog_object_detector":
    """dlib's HOG detector (King 2009). dlib unpacks it for half a second at each call of its own function."""
    import dlib

    return dlib.get_frontal_face_detector()


@cache
def load_face_recognizer() -> "dlib.face_recognition_model_v1":
    """dlib's recognizer of faces, by dlib's own code: slow for many faces, but without the import of PyTorch."""
    import dlib

    return dlib.face_recognition_model_v1(str(find_model(RECOGNIZER)))


@cache
def load_landmark_predictor() -> "dlib.shape_predictor":
    """The predictor of 68 landmarks in the iBUG order (Kazemi and Sullivan 2014), a file of 100 MB.

    Raises MasqueradeError if the package face-recognition-models is not installed.
    """
    import dlib

    return dlib.shape_predictor(str(find_model("shape_predictor_68_face_landmarks.dat")))


DETECTOR_SIDE = 178
"""Side in pixels of the images that the detector scans. It finds faces of 80 pixels and more, which is 0.45 of the
side; the face in an aligned crop fills more than half of it. 178 is a step of dlib's pyramid from 256 (256 x 25/36), so
the boxes are those of a scan at 256 pixels, in half of its time."""


def detect_faces(images: np.ndarray) -> np.ndarray:
    """Whether the HOG detector detects a face: float32 (N, 3, H, W) in [-1, 1] -> bool (N,)."""
    return np.array(
        [bool(load_face_detector().run(picture, 0, 0.0)[0]) for picture in to_pixels(images, DETECTOR_SIDE)],
        dtype=bool,
    )
