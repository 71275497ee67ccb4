"""Attributes of a face, by a classifier that was trained here on real annotated faces. No method uses it."""

from typing import Any

import numpy as np

from masquerade.core.annotations import ATTRIBUTES
from masquerade.judges._trained import TrainedJudge
from masquerade.networks.inputs import device


class AttributeClassifier(TrainedJudge):
    """``male``, ``young``, ``smiling``, ``heavy_makeup``, ``blond_hair``, ``black_hair``, ``brown_hair``,
    ``gray_hair``, ``wavy_hair``: the probability of each attribute of CelebA, in [0, 1], independent of the others.

    ``male`` has the same name as in age_gender, so that the metric gender_preservation uses both judges. ``young`` is
    not an age. An attribute that the network did not learn, because its faces had no such annotation, is NaN.
    """

    title = "classifier of attributes"
    source = "backbones/attribute_classifier.py"
    needs = ("attribute_classifier",)
    quantities = {name.lower(): () for name in ATTRIBUTES}

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        probabilities = self._network(torch.from_numpy(images).to(device())).sigmoid().cpu().numpy()
        unknown = dict.fromkeys(self.quantities, np.full(len(images), np.nan, np.float32))
        network: Any = self._network
        learned = [name.lower() for name in network.attributes]
        return unknown | dict(zip(learned, probabilities.T, strict=True))
