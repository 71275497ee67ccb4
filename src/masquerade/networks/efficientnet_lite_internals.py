"""What Masquerade uses of the package efficientnet-lite-pytorch beyond its public interface: the blocks of a network,
and the layers that its pictures pass between two convolutions.

``tests/unit/test_efficientnet_lite_internals.py`` fails when the installed package differs from VERSION in these parts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

VERSION = "0.1.0"
"""The version of efficientnet-lite-pytorch for which this module is written."""


def blocks(network: Any) -> list["nn.Module"]:
    """The stem, the blocks and the head, in the order in which a picture passes through them."""
    from torch import nn

    stem = nn.Sequential(network._conv_stem, network._bn0, network._swish)
    head = nn.Sequential(network._conv_head, network._bn1, network._swish)
    return [stem, *network._blocks, head]


def quick(network: Any) -> Any:
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
