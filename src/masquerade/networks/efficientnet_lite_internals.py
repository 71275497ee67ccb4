"""What Masquerade uses of the package efficientnet-lite-pytorch beyond its public interface: the blocks of a network.

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
