"""FAN: stacked hourglasses with a heat map for each of 68 landmarks (Bulat and Tzimiropoulos 2017, arXiv:1703.07332).

The names and shapes of the tensors are those of ``2DFAN4-11f355bf06.pth.tar`` (four hourglasses: FAN-4), so that its
weights load strictly.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

POINTS, WIDTH, DEPTH = 68, 256, 4


class ConvBlock(nn.Module):
    """Three 3 x 3 convolutions in a row with 1/2, 1/4 and 1/4 of the channels, concatenated, and a shortcut."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        half, quarter = outputs // 2, outputs // 4
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, half, 3, padding=1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(half), nn.Conv2d(half, quarter, 3, padding=1, bias=False)
        self.bn3, self.conv3 = nn.BatchNorm2d(quarter), nn.Conv2d(quarter, quarter, 3, padding=1, bias=False)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(
                nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, outputs, 1, bias=False)
            )

    def forward(self, x: Tensor) -> Tensor:
        first = self.conv1(self.bn1(x).relu())
        second = self.conv2(self.bn2(first).relu())
        third = self.conv3(self.bn3(second).relu())
        shortcut = x if self.downsample is None else self.downsample(x)
        return torch.cat([first, second, third], dim=1) + shortcut


class Hourglass(nn.Module):
    """Reduces features to a sixteenth of their size and enlarges them again, with a skip branch at each size."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.depth = depth
        for level in range(depth, 0, -1):
            for name in ("b1", "b2", *(["b2_plus"] if level == 1 else []), "b3"):
                self.add_module(f"{name}_{level}", ConvBlock(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return self._at(self.depth, x)

    def _at(self, level: int, x: Tensor) -> Tensor:
        def block(name: str, features: Tensor) -> Tensor:
            return getattr(self, f"{name}_{level}")(features)

        low = block("b2", functional.avg_pool2d(x, 2))
        low = block("b2_plus", low) if level == 1 else self._at(level - 1, low)
        return block("b1", x) + functional.interpolate(block("b3", low), scale_factor=2, mode="nearest")


class FAN(nn.Module):
    """Faces (N, 3, 256, 256), RGB in [0, 1] -> heat maps (N, 68, 64, 64) of the last hourglass, iBUG order."""

    def __init__(self, modules: int = 4):
        super().__init__()
        self.count = modules
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64)
        self.conv2, self.conv3, self.conv4 = ConvBlock(64, 128), ConvBlock(128, 128), ConvBlock(128, WIDTH)
        for number in range(modules):
            self.add_module(f"m{number}", Hourglass(WIDTH, DEPTH))
            self.add_module(f"top_m_{number}", ConvBlock(WIDTH, WIDTH))
            self.add_module(f"conv_last{number}", nn.Conv2d(WIDTH, WIDTH, 1))
            self.add_module(f"bn_end{number}", nn.BatchNorm2d(WIDTH))
            self.add_module(f"l{number}", nn.Conv2d(WIDTH, POINTS, 1))
            if number < modules - 1:
                self.add_module(f"bl{number}", nn.Conv2d(WIDTH, WIDTH, 1))
                self.add_module(f"al{number}", nn.Conv2d(POINTS, WIDTH, 1))

    def forward(self, images: Tensor) -> Tensor:
        x = functional.avg_pool2d(self.conv2(self.bn1(self.conv1(images)).relu()), 2)
        x = maps = self.conv4(self.conv3(x))
        for number in range(self.count):
            part: dict[str, Any] = {name: getattr(self, f"{name}{number}", None)
                    for name in ("m", "top_m_", "conv_last", "bn_end", "l", "bl", "al")}  # fmt: skip
            features = part["bn_end"](part["conv_last"](part["top_m_"](part["m"](x)))).relu()
            maps = part["l"](features)
            if part["bl"] is not None:
                x = x + part["bl"](features) + part["al"](maps)
        return maps


def peaks(maps: Tensor) -> Tensor:
    """Heat maps (N, P, S, S) -> x, y (N, P, 2) of their maxima as shares of the side.

    A maximum that is not at the edge is moved by a quarter of a cell towards its higher neighbor, in x and in y (Bulat
    and Tzimiropoulos 2017, published code).
    """
    side = maps.shape[2]
    best = maps.flatten(2).argmax(2)
    x, y = best % side, best // side
    inside = (x > 0) & (x < side - 1) & (y > 0) & (y < side - 1)

    def at(row: Tensor, column: Tensor) -> Tensor:
        position = row.clamp(0, side - 1) * side + column.clamp(0, side - 1)
        return maps.flatten(2).gather(2, position[..., None])[..., 0]

    slope = torch.stack([at(y, x + 1) - at(y, x - 1), at(y + 1, x) - at(y - 1, x)], dim=-1)
    cell = torch.stack([x, y], dim=-1) + 0.5
    return (cell + 0.25 * slope.sign() * inside[..., None]) / side
