"""A trunk with ImageNet's weights below the embedding of ArcFace (Deng et al. 2019)."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

Trunk: TypeAlias = Literal["mobilenet_v2", "efficientnet_lite0"]
CHANNELS = 320  # of the last block of both trunks
STRIDE = 32
EMBEDDING = 512


class ImageNetRecognizer(nn.Module):
    """(N, 3, size, size) in [-1, 1] -> (N, 512), not normalized.

    The blocks of MobileNetV2 (Sandler et al. 2018) or EfficientNet-Lite0 (Tan and Le 2019), whose batch normalizations
    keep their statistics, and the last layers of ArcFace's network, which see each place of the face by itself.
    """

    def __init__(self, trunk: Trunk, size: int):
        super().__init__()
        self.trunk: Trunk = trunk
        self.blocks = _build_untrained(trunk, size)
        side = -(-size // STRIDE)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(CHANNELS),
            nn.Flatten(),
            nn.Linear(CHANNELS * side * side, EMBEDDING),
            nn.BatchNorm1d(EMBEDDING),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.output_layer(self.blocks(x))

    def train(self, mode: bool = True) -> "ImageNetRecognizer":
        """As in PyTorch, but the blocks stay in evaluation mode."""
        super().train(mode)
        self.blocks.eval()
        return self

    def start_from_imagenet(self) -> None:
        """Give the blocks ImageNet's weights, for images in [-1, 1]. Raises CheckpointError without the package."""
        published, mean, std = _load_imagenet(self.trunk)
        self.blocks.load_state_dict(dict(_for_own_range(published.state_dict(), mean, std)))


def _build_untrained(trunk: Trunk, size: int) -> nn.Sequential:
    if trunk == "mobilenet_v2":
        from masquerade.networks import torchvision_internals

        torchvision_internals.ensure()
        from torchvision.models import mobilenet_v2

        return mobilenet_v2(weights=None).features[:-1]
    from efficientnet_lite_pytorch import EfficientNet

    return _trunk_of_efficientnet(EfficientNet.from_name("efficientnet-lite0", image_size=size))


def _load_imagenet(trunk: Trunk) -> tuple[nn.Sequential, tuple[float, ...], tuple[float, ...]]:
    """The blocks with ImageNet's weights, and mean and deviation of the images in [0, 1] that they learned."""
    if trunk == "mobilenet_v2":
        from masquerade.networks import mobilenet_v2

        network: Any = mobilenet_v2.load_network()
        return network.features[:-1], mobilenet_v2.MEAN, mobilenet_v2.STD
    from masquerade.networks import efficientnet_lite_internals

    return (
        _trunk_of_efficientnet(efficientnet_lite_internals.load_network(0)),
        efficientnet_lite_internals.MEAN,
        efficientnet_lite_internals.STD,
    )


def _trunk_of_efficientnet(network: nn.Module) -> nn.Sequential:
    from masquerade.networks import efficientnet_lite_internals

    return nn.Sequential(*efficientnet_lite_internals.list_blocks(network)[:-1])


def _for_own_range(
    state: dict[str, Tensor], mean: tuple[float, ...], std: tuple[float, ...]
) -> Iterator[tuple[str, Tensor]]:
    """The weights with the normalization in the first layers: ((x + 1) / 2 - mean) / std for x in [-1, 1].

    The kernel takes the factor, and the mean of the batch normalization after it the shift. At the edges, the zeros
    around the image are then gray and not ImageNet's mean, which the networks hardly notice.
    """
    kernel = state["0.0.weight"]
    middle, deviation = (kernel.new_tensor(values)[:, None, None] for values in (mean, std))
    factor, shift = 0.5 / deviation, (0.5 - middle) / deviation
    mean_shift = (kernel * shift).sum(dim=(1, 2, 3))
    changed = {"0.0.weight": kernel * factor, "0.1.running_mean": state["0.1.running_mean"] - mean_shift}
    for name, value in state.items():
        yield name, changed.get(name, value)
