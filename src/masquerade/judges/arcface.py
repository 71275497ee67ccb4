"""ArcFace's IR-SE-50: independent for methods whose losses do not use it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._published import PublishedJudge
from masquerade.networks.inputs import device, piecewise

if TYPE_CHECKING:
    import torch


class Arcface(PublishedJudge):
    """``embedding``: unit vectors (512,); compare them by their angle.

    At paper scale, the losses of the methods use the same network (backbones/identity/), with the same preprocessing:
    RGB in [-1, 1], FALCO's crop of the picture at 256 pixels, averaged to 112 x 112. For methods that were trained with
    it, it is not an independent judge, and their tables state this.
    """

    title = "ArcFace (IR-SE-50)"
    source = "Deng et al. 2019, arXiv:1801.07698; model_ir_se50.pth of InsightFace_Pytorch"
    packages = ("torch",)
    assets = ("ir_se50",)
    shares = ("identity",)
    quantities = {"embedding": (512,)}

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.backbones.identity import published_weights

        return published_weights.recognizer(path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        return {"embedding": self._network(torch.from_numpy(images).to(device())).cpu().numpy()}
