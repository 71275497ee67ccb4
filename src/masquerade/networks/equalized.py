"""Linear layers with an equalized learning rate (Karras et al. 2018, section 4.1), as StyleGAN2 has them."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

SLOPE, GAIN = 0.2, math.sqrt(2.0)  # of the leaky rectifiers


def activated(x: Tensor) -> Tensor:
    """A leaky rectifier that keeps the variance."""
    return functional.leaky_relu(x, SLOPE) * GAIN


class EqualLinear(nn.Module):
    """A linear layer whose weights are scaled at run time (equalized learning rate; Karras et al. 2018)."""

    def __init__(self, inputs: int, outputs: int, bias: float = 0.0, rate: float = 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / rate)
        self.bias = nn.Parameter(torch.full((outputs,), bias))
        self.scale, self.rate = rate / math.sqrt(inputs), rate

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight * self.scale, self.bias * self.rate)


class ActivatedLinear(EqualLinear):
    """`EqualLinear` with a leaky rectifier: a layer of the mapping network."""

    def forward(self, x: Tensor) -> Tensor:
        return activated(super().forward(x))


class PixelNorm(nn.Module):
    """Scales each vector to a mean square of 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-8)
