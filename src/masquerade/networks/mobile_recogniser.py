"""MobileNetV2 with ImageNet's weights (Sandler et al. 2018) below an embedding of a face (Chen et al. 2018)."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from masquerade.networks import torchvision_internals

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANNELS = 320  # of the last block of MobileNetV2
WIDTH = 512  # of the layers of the embedding
STRIDE = 32


class MobileRecogniser(nn.Module):
    """(N, 3, size, size) in [-1, 1] -> (N, 512), not normalised.

    The blocks of MobileNetV2, a 1 x 1 convolution, MobileFaceNet's depthwise convolution over the whole map (arXiv:
    1804.07573, section 3.2), which weighs each place of a face by itself, and a linear layer. The batch normalisations
    of the blocks keep their statistics.
    """

    def __init__(self, size: int):
        super().__init__()
        torchvision_internals.ensure()
        from torchvision.models import mobilenet_v2

        self.blocks = mobilenet_v2(weights=None).features[:-1]
        side = -(-size // STRIDE)
        self.wide = nn.Sequential(nn.Conv2d(CHANNELS, WIDTH, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.PReLU(WIDTH))
        self.whole = nn.Sequential(nn.Conv2d(WIDTH, WIDTH, side, groups=WIDTH, bias=False), nn.BatchNorm2d(WIDTH))
        self.embedding = nn.Sequential(nn.Flatten(), nn.Linear(WIDTH, WIDTH, bias=False), nn.BatchNorm1d(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.embedding(self.whole(self.wide(self.blocks(x))))

    def train(self, mode: bool = True) -> "MobileRecogniser":
        """As in PyTorch, but the blocks stay in evaluation mode."""
        super().train(mode)
        self.blocks.eval()
        return self

    def start_from_imagenet(self) -> None:
        """Give the blocks ImageNet's weights, for pictures in [-1, 1]. Raises CheckpointError without the package."""
        from masquerade.networks import mobilenet_v2

        published = mobilenet_v2.network().features[:-1].state_dict()
        self.blocks.load_state_dict(dict(_for_own_range(published, mobilenet_v2.MEAN, mobilenet_v2.STD)))


def _for_own_range(
    state: dict[str, Tensor], mean: tuple[float, ...], std: tuple[float, ...]
) -> "Iterator[tuple[str, Tensor]]":
    """The weights with the normalisation in the first layers: ((x + 1) / 2 - mean) / std for x in [-1, 1].

    The kernel takes the factor, and the mean of the batch normalisation after it the shift. At the edges, the zeros
    around the picture are then grey and not ImageNet's mean, which the networks hardly notice.
    """
    kernel = state["0.0.weight"]
    factor, shift = (kernel.new_tensor(values)[:, None, None] for values in _affine(mean, std))
    moved = (kernel * shift).sum(dim=(1, 2, 3))
    changed = {"0.0.weight": kernel * factor, "0.1.running_mean": state["0.1.running_mean"] - moved}
    for name, value in state.items():
        yield name, changed.get(name, value)


def _affine(mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[list[float], list[float]]:
    factors = [0.5 / deviation for deviation in std]
    shifts = [(0.5 - average) / deviation for average, deviation in zip(mean, std, strict=True)]
    return factors, shifts
