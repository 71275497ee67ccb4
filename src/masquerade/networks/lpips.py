"""LPIPS on AlexNet: the learnt perceptual distance of two pictures (Zhang et al. 2018, arXiv:1801.03924)."""

from pathlib import Path
from typing import TYPE_CHECKING

from masquerade.assets.packaged import packaged

if TYPE_CHECKING:
    import torch

HEADS = ("lin0", "lin1", "lin2", "lin3", "lin4")
SLICES = {"0": "slice1", "3": "slice2", "6": "slice3", "8": "slice4", "10": "slice5"}
"""Position of each of AlexNet's five convolutions in ``features`` -> the module of the package that has it."""


def network(path: Path) -> "torch.nn.Module":
    """LPIPS on the AlexNet of the file at ``path``, frozen: two batches in [-1, 1] -> (N, 1, 1, 1), differentiable.

    Raises CheckpointError if the file does not have the published tensors.
    """
    from masquerade.networks import torchvision_internals
    from masquerade.training import weight_files

    torchvision_internals.ensure()
    import lpips
    from torch.nn import ModuleDict

    made = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False)
    heads = packaged("lpips", "weights", "v0.1", "alex.pth", install="lpips")
    own = ModuleDict({name: made.get_submodule(name) for name in HEADS})
    weight_files.load(own, weight_files.tensors(weight_files.read(heads), heads), heads)
    layers = {place: getattr(made.net, name).get_submodule(place) for place, name in SLICES.items()}
    weights = weight_files.tensors(weight_files.read(path), path, {"classifier.": "ImageNet's classes"})
    weight_files.load(ModuleDict({"features": ModuleDict(layers)}), weights, path)
    return made.eval().requires_grad_(False)
