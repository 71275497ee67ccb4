"""MobileNetV2 (Sandler et al. 2018) with ImageNet's weights below the embedding of ArcFace (Deng et al. 2019)."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from masquerade.networks import torchvision_internals

CHANNELS = 320  # of the last block of MobileNetV2
STRIDE = 32
EMBEDDING = 512


class MobileRecogniser(nn.Module):
    """(N, 3, size, size) in [-1, 1] -> (N, 512), not normalised.

    The blocks of MobileNetV2, whose batch normalisations keep their statistics, and the last layers of ArcFace's
    network, which see each place of the face by itself.
    """

    def __init__(self, size: int):
        super().__init__()
        torchvision_internals.ensure()
        from torchvision.models import mobilenet_v2

        self.blocks = mobilenet_v2(weights=None).features[:-1]
        side = -(-size // STRIDE)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(CHANNELS),
            nn.Flatten(),
            nn.Linear(CHANNELS * side * side, EMBEDDING),
            nn.BatchNorm1d(EMBEDDING),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.output_layer(self.blocks(x))

    def train(self, mode: bool = True) -> "MobileRecogniser":
        """As in PyTorch, but the blocks stay in evaluation mode."""
        super().train(mode)
        self.blocks.eval()
        return self

    def start_from_imagenet(self) -> None:
        """Give the blocks ImageNet's weights, for pictures in [-1, 1]. Raises CheckpointError without the package."""
        from masquerade.networks import mobilenet_v2

        published: Any = mobilenet_v2.network()
        state = published.features[:-1].state_dict()
        self.blocks.load_state_dict(dict(_for_own_range(state, mobilenet_v2.MEAN, mobilenet_v2.STD)))


def _for_own_range(
    state: dict[str, Tensor], mean: tuple[float, ...], std: tuple[float, ...]
) -> Iterator[tuple[str, Tensor]]:
    """The weights with the normalisation in the first layers: ((x + 1) / 2 - mean) / std for x in [-1, 1].

    The kernel takes the factor, and the mean of the batch normalisation after it the shift. At the edges, the zeros
    around the picture are then grey and not ImageNet's mean, which the networks hardly notice.
    """
    kernel = state["0.0.weight"]
    middle, deviation = (kernel.new_tensor(values)[:, None, None] for values in (mean, std))
    factor, shift = 0.5 / deviation, (0.5 - middle) / deviation
    moved = (kernel * shift).sum(dim=(1, 2, 3))
    changed = {"0.0.weight": kernel * factor, "0.1.running_mean": state["0.1.running_mean"] - moved}
    for name, value in state.items():
        yield name, changed.get(name, value)
