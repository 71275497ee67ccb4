"""LPIPS on AlexNet: the learnt perceptual distance of two pictures."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._preparing import packaged, piecewise
from masquerade.judges._published import PublishedJudge, device

if TYPE_CHECKING:
    import torch

HEADS = ("lin0", "lin1", "lin2", "lin3", "lin4")
SLICES = {"0": "slice1", "3": "slice2", "6": "slice3", "8": "slice4", "10": "slice5"}
"""Where the package keeps the five convolutions of AlexNet, by their places in ``features``."""


class Lpips(PublishedJudge):
    """``perceptual``: LPIPS, version 0.1, to the reference; at least 0, 0 for equal pictures.

    Preprocessing: none but the image contract (RGB in [-1, 1], at the size of the picture); the package shifts and
    scales it. The heads come with the package; AlexNet is ImageNet's file, of whose ``classifier`` nothing is used.
    """

    title = "LPIPS (AlexNet)"
    source = "Zhang et al. 2018, arXiv:1801.03924; heads of the package lpips, alexnet-owt of torchvision"
    packages = ("lpips", "torchvision", "torch")
    assets = ("alexnet",)
    quantities = {"perceptual": ()}

    def _build(self, path: Path) -> "torch.nn.Module":
        return network(path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return {} if reference is None else piecewise(self._measure, images, reference)

    def _measure(self, images: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        distance = self._network(*(torch.from_numpy(given).to(device()) for given in (images, reference)))
        return {"perceptual": distance.flatten(1)[:, 0].cpu().numpy()}


def network(path: Path) -> "torch.nn.Module":
    """LPIPS on the AlexNet of the file at ``path``, frozen: two batches in [-1, 1] -> (N, 1, 1, 1), differentiable.

    Raises CheckpointError where the file does not hold the published tensors.
    """
    from masquerade import _torchvision, published

    _torchvision.ensure()
    import lpips
    from torch.nn import ModuleDict

    made = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False)
    heads = packaged("lpips", "weights", "v0.1", "alex.pth", install="lpips")
    own = ModuleDict({name: made.get_submodule(name) for name in HEADS})
    published.load(own, published.tensors(published.read(heads), heads), heads)
    layers = {place: getattr(made.net, name).get_submodule(place) for place, name in SLICES.items()}
    weights = published.tensors(published.read(path), path, {"classifier.": "ImageNet's classes"})
    published.load(ModuleDict({"features": ModuleDict(layers)}), weights, path)
    return made.eval().requires_grad_(False)
