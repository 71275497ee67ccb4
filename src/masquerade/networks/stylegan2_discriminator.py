"""The residual discriminator of StyleGAN2 (Karras et al. 2020, section 4 and appendix B), in plain PyTorch."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.equalized import ActivatedLinear, EqualLinear, activated
from masquerade.networks.low_pass import LowPass

GROUP = 4  # largest number of pictures over which the deviation is computed


class EqualConv2d(nn.Module):
    """A convolution with equalized learning rate; with ``down`` low-passed and with stride 2."""

    def __init__(self, inputs: int, outputs: int, kernel: int, down: bool = False, active: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs)) if active else None
        self.scale, self.down, self.active = 1 / math.sqrt(inputs * kernel**2), down, active
        self.padding = 0 if down else kernel // 2
        if down:
            border = 2 if kernel == 3 else 1
            self.blur = LowPass(up=1, padding=(border, border))

    def forward(self, x: Tensor) -> Tensor:
        if self.down:
            x = self.blur(x) / 4  # the filter of `LowPass` has the gain of up-sampling
        x = functional.conv2d(
            x, self.weight * self.scale, self.bias, stride=2 if self.down else 1, padding=self.padding
        )
        return activated(x) if self.active else x


class ResidualBlock(nn.Module):
    """Two convolutions, of which the second halves the picture, and a 1 x 1 shortcut."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv1 = EqualConv2d(inputs, inputs, 3)
        self.conv2 = EqualConv2d(inputs, outputs, 3, down=True)
        self.skip = EqualConv2d(inputs, outputs, 1, down=True, active=False)

    def forward(self, x: Tensor) -> Tensor:
        return (self.conv2(self.conv1(x)) + self.skip(x)) / math.sqrt(2)


class Discriminator(nn.Module):
    """Pictures (N, ``inputs``, size, size) -> scores (N, 1), unbounded; larger means more real.

    ``channels``: at 4, 8, ... ``size`` pixels, as for the generator. ``inputs``: 3, or more with what the pictures are
    conditioned on.
    """

    def __init__(self, size: int, channels: Sequence[int], inputs: int = 3):
        super().__init__()
        if len(channels) != int(math.log2(size)) - 1:
            raise ValueError(f"{size} pixels need {int(math.log2(size)) - 1} numbers of channels, not {len(channels)}")
        down = list(reversed(channels))
        self.convs = nn.Sequential(EqualConv2d(inputs, down[0], 1), *(ResidualBlock(a, b) for a, b in pairwise(down)))
        self.final_conv = EqualConv2d(channels[0] + 1, channels[0], 3)
        self.final_linear = nn.Sequential(ActivatedLinear(channels[0] * 16, channels[0]), EqualLinear(channels[0], 1))

    def forward(self, images: Tensor) -> Tensor:
        x = self.convs(images)
        return self.final_linear(self.final_conv(torch.cat([x, deviation(x)], dim=1)).flatten(1))


def group(count: int) -> int:
    """The number of pictures over which the deviation is computed: the largest divisor of ``count`` up to GROUP."""
    return next(size for size in range(min(GROUP, count), 0, -1) if count % size == 0)


def deviation(x: Tensor) -> Tensor:
    """Minibatch standard deviation (Karras et al. 2018, section 3): (N, C, H, W) -> (N, 1, H, W).

    Averaged over channels and positions, within groups of `group` pictures.
    """
    count, _, height, width = x.shape
    together = group(count)
    spread = x.view(together, -1, *x.shape[1:]).var(dim=0, unbiased=False).add(1e-8).sqrt()
    mean = spread.mean(dim=(1, 2, 3))
    return mean.repeat(together).view(count, 1, 1, 1).expand(-1, 1, height, width)
