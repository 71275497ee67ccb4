"""CNN-6, the landmark network of the Wing loss, and that loss (Feng et al. 2018, arXiv:1711.06753)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

WIDTHS = (32, 64, 128, 256, 512)
"""Channels of the five convolutions of CNN-6."""


class LandmarkNet(nn.Module):
    """Images (N, 3, size, size) in [-1, 1] -> points (N, points, 2): x, y as shares of the picture's side.

    CNN-6 (Feng et al. 2018, section 3): 3 x 3 convolutions, each followed by ReLU and 2 x 2 max pooling, one hidden
    layer, and the coordinates. Unlike a heat map, a coordinate has a gradient at every position.
    """

    def __init__(self, points: int = 68, size: int = 64, widths: Sequence[int] = WIDTHS, hidden: int = 1024):
        super().__init__()
        side = size // 2 ** len(widths)
        if side < 1:
            raise ValueError(f"size is {size}; {len(widths)} halvings need at least {2 ** len(widths)} pixels.")
        layers = []
        for inputs, outputs in zip((3, *widths[:-1]), widths, strict=True):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(widths[-1] * side * side, hidden), nn.ReLU())
        self.places = nn.Linear(hidden, 2 * points)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def start_at(self, shape: Tensor) -> None:
        """Initialize the output as the mean ``shape`` (points, 2), in shares of the side."""
        with torch.no_grad():
            self.places.weight.mul_(0.01)
            self.places.bias.copy_(shape.flatten())

    def forward(self, images: Tensor) -> Tensor:
        return self.places(self.hidden(self.features(images))).unflatten(1, (-1, 2))


def wing_loss(predicted: Tensor, true: Tensor, w: float, epsilon: float) -> Tensor:
    """Mean of Wing(x) over all coordinates, x = predicted - true in pixels (Feng et al. 2018, Eq. 5).

    Below ``w`` pixels a logarithm, with the slope w / epsilon at 0, and a straight line above: small and medium errors
    have more weight than with L1.
    """
    x = (predicted - true).abs()
    c = w - w * math.log(1 + w / epsilon)  # joins both parts at |x| = w
    return torch.where(x < w, w * torch.log1p(x / epsilon), x - c).mean()
