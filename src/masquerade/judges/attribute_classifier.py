"""What a face shows, by a classifier that was trained here on real annotated faces and that no method may use."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade import discovery
from masquerade.backbones.attribute_classifier import ATTRIBUTES
from masquerade.errors import CheckpointError
from masquerade.judges import Judge
from masquerade.judges._preparing import piecewise
from masquerade.settings import Settings


class AttributeClassifier(Judge):
    """``male``, ``young``, ``smiling``, ``heavy_makeup``, ``blond_hair``, ``black_hair``, ``brown_hair``,
    ``gray_hair``, ``wavy_hair``: the probability of each attribute of CelebA, in [0, 1], each on its own.

    ``male`` is on purpose what age_gender calls so: the metric gender_preservation then has both judges. ``young`` is
    no age. Preprocessing: none but the image contract; the backbone takes RGB in [-1, 1] at any size and brings it to
    its own. Raises CheckpointError where the backbone's checkpoint was not given.
    """

    title = "classifier of attributes"
    source = "backbones/attribute_classifier.py"
    needs = ("attribute_classifier",)
    packages = ("torch",)
    quantities = {name.lower(): () for name in ATTRIBUTES}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (name,) = self.needs
        if name not in backbones:
            raise CheckpointError(f"The judge '{name}' needs the checkpoint of the backbone '{name}': build it first.")
        self._network = discovery.load("backbones", name).load(backbones[name])

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        shares = self._network(torch.from_numpy(images)).sigmoid().numpy()
        return dict(zip(self.quantities, shares.T, strict=True))
