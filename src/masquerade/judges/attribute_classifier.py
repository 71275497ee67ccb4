"""What a face shows, by a classifier that was trained here on real annotated faces and that no method may use."""

import numpy as np

from masquerade.backbones.attribute_classifier import ATTRIBUTES
from masquerade.judges._trained import TrainedJudge


class AttributeClassifier(TrainedJudge):
    """``male``, ``young``, ``smiling``, ``heavy_makeup``, ``blond_hair``, ``black_hair``, ``brown_hair``,
    ``gray_hair``, ``wavy_hair``: the probability of each attribute of CelebA, in [0, 1], each on its own.

    ``male`` is on purpose what age_gender calls so: the metric gender_preservation then has both judges. ``young`` is
    no age.
    """

    title = "classifier of attributes"
    source = "backbones/attribute_classifier.py"
    needs = ("attribute_classifier",)
    quantities = {name.lower(): () for name in ATTRIBUTES}

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        shares = self._network(torch.from_numpy(images)).sigmoid().numpy()
        return dict(zip(self.quantities, shares.T, strict=True))
