"""Inception-ResNet-v1 (Szegedy et al. 2017) as FaceNet's public models use it (Schroff et al. 2015).

The names of its tensors are those of facenet-pytorch, so that its published weights load strictly. ``width`` scales
the numbers of channels except that of the embedding, and ``repeats`` sets the numbers of blocks, for smaller networks.
"""

from typing import Any

import torch
from torch import Tensor, nn


class BasicConv2d(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: Any, stride: int = 1, padding: Any = 0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)))


class Reduction(nn.Module):
    """Parallel branches, concatenated. Those of a reduction halve the image."""

    def __init__(self, branches: list[nn.Module]):
        super().__init__()
        for number, branch in enumerate(branches):
            self.add_module(f"branch{number}", branch)
        self.count = len(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([getattr(self, f"branch{number}")(x) for number in range(self.count)], 1)


class Residual(Reduction):
    """Parallel branches, joined by a 1 x 1 convolution, scaled and added to the input (Szegedy et al. 2017, 3.3)."""

    def __init__(self, channels: int, joined: int, scale: float, branches: list[nn.Module], relu: bool = True):
        super().__init__(branches)
        self.scale = scale
        self.conv2d = nn.Conv2d(joined, channels, 1)
        self.relu = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(x + self.scale * self.conv2d(super().forward(x)))


class InceptionResnetV1(nn.Module):
    """(N, 3, S, S) with S >= 75 -> (N, 512), not normalized. The defaults are published, at 160 pixels.

    Input of the published weights: (x - 127.5) / 128 on 8-bit RGB.
    """

    def __init__(
        self,
        width: float = 1.0,
        repeats: tuple[int, int, int] = (5, 10, 5),
    ):
        super().__init__()

        def c(channels: int) -> int:
            return max(4, round(channels * width))

        def conv(inputs: int, outputs: int, kernel: Any, stride: int = 1, padding: Any = 0) -> BasicConv2d:
            return BasicConv2d(c(inputs) if inputs > 3 else inputs, c(outputs), kernel, stride, padding)

        self.conv2d_1a = conv(3, 32, 3, 2)
        self.conv2d_2a = conv(32, 32, 3)
        self.conv2d_2b = conv(32, 64, 3, 1, 1)
        self.maxpool_3a = nn.MaxPool2d(3, 2)
        self.conv2d_3b = conv(64, 80, 1)
        self.conv2d_4a = conv(80, 192, 3)
        self.conv2d_4b = conv(192, 256, 3, 2)

        def block35() -> Residual:
            branches = [
                conv(256, 32, 1),
                nn.Sequential(conv(256, 32, 1), conv(32, 32, 3, 1, 1)),
                nn.Sequential(conv(256, 32, 1), conv(32, 32, 3, 1, 1), conv(32, 32, 3, 1, 1)),
            ]
            return Residual(c(256), 3 * c(32), 0.17, branches)

        mixed_6a = c(384) + c(256) + c(256)
        mixed_7a = c(384) + c(256) + c(256) + mixed_6a

        def wide(inputs: int, channels: int, kernel: int) -> list[nn.Module]:
            side = kernel // 2
            return [
                BasicConv2d(inputs, c(channels), 1),
                nn.Sequential(
                    BasicConv2d(inputs, c(channels), 1),
                    conv(channels, channels, (1, kernel), 1, (0, side)),
                    conv(channels, channels, (kernel, 1), 1, (side, 0)),
                ),
            ]

        self.repeat_1 = nn.Sequential(*(block35() for _ in range(repeats[0])))
        self.mixed_6a = Reduction(
            [
                conv(256, 384, 3, 2),
                nn.Sequential(conv(256, 192, 1), conv(192, 192, 3, 1, 1), conv(192, 256, 3, 2)),
                nn.MaxPool2d(3, 2),
            ]
        )
        self.repeat_2 = nn.Sequential(
            *(Residual(mixed_6a, 2 * c(128), 0.10, wide(mixed_6a, 128, 7)) for _ in range(repeats[1]))
        )
        self.mixed_7a = Reduction(
            [
                nn.Sequential(BasicConv2d(mixed_6a, c(256), 1), conv(256, 384, 3, 2)),
                nn.Sequential(BasicConv2d(mixed_6a, c(256), 1), conv(256, 256, 3, 2)),
                nn.Sequential(BasicConv2d(mixed_6a, c(256), 1), conv(256, 256, 3, 1, 1), conv(256, 256, 3, 2)),
                nn.MaxPool2d(3, 2),
            ]
        )
        self.repeat_3 = nn.Sequential(
            *(Residual(mixed_7a, 2 * c(192), 0.20, wide(mixed_7a, 192, 3)) for _ in range(repeats[2]))
        )
        self.block8 = Residual(mixed_7a, 2 * c(192), 1.0, wide(mixed_7a, 192, 3), relu=False)
        self.avgpool_1a = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.6)
        self.last_linear = nn.Linear(mixed_7a, 512, bias=False)
        self.last_bn = nn.BatchNorm1d(512, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(x)))
        x = self.conv2d_4b(self.conv2d_4a(self.conv2d_3b(self.maxpool_3a(x))))
        x = self.repeat_2(self.mixed_6a(self.repeat_1(x)))
        x = self.block8(self.repeat_3(self.mixed_7a(x)))
        x = self.dropout(self.avgpool_1a(x)).flatten(1)
        return self.last_bn(self.last_linear(x))
