"""LPIPS on AlexNet: the learnt perceptual distance of two pictures."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._preparing import packaged, piecewise
from masquerade.judges._published import PublishedJudge

if TYPE_CHECKING:
    import torch

SLICES = {0: "slice1", 3: "slice2", 6: "slice3", 8: "slice4", 10: "slice5"}
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

        distance = self._network(torch.from_numpy(images), torch.from_numpy(reference))
        return {"perceptual": distance.flatten(1)[:, 0].numpy()}


def network(path: Path) -> "torch.nn.Module":
    """LPIPS on the AlexNet of the file at ``path``, frozen: two batches in [-1, 1] -> (N, 1, 1, 1), differentiable.

    Raises CheckpointError where the file does not hold the published tensors.
    """
    from masquerade import _torchvision, published

    _torchvision.ensure()
    import lpips

    made = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False)
    heads = packaged("lpips", "weights", "v0.1", "alex.pth", install="lpips")
    for name, weights in published.tensors(published.read(heads), heads).items():
        published.load(made.get_submodule(name.rpartition(".")[0]), {"weight": weights}, heads)
    trunk = published.tensors(published.read(path), path, {"classifier.": "ImageNet's classes"})
    published.load(made.net, {renamed(name): value for name, value in trunk.items()}, path)
    return made.eval().requires_grad_(False)


def renamed(name: str) -> str:
    """``features.3.weight`` of torchvision -> ``slice2.3.weight`` of lpips; another name stays as it is."""
    room, _, rest = name.partition(".")
    place = rest.partition(".")[0]
    return f"{SLICES[int(place)]}.{rest}" if room == "features" and place.isdigit() and int(place) in SLICES else name
