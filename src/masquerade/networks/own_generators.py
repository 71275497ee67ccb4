"""StyleGAN2 with other weights for each picture of a batch: as many generators as pictures, in one pass."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.stylegan2 import Activation, ConstantInput, Generator, NoiseInjection, ToRGB
from masquerade.networks.stylegan2_layers import ModulatedConv2d

LEADING = {
    ConstantInput: ("input", (1, 1, 1)),
    NoiseInjection: ("weight", (1, 1, 1)),
    Activation: ("bias", (1,)),
    ToRGB: ("bias", (1, 1, 1)),
}
"""The parameters outside of convolutions, and the dimensions that follow that of the pictures."""


class SquareSums(torch.autograd.Function):
    """The sum of the squares of each kernel: (..., k, k) -> (...). PyTorch's own gradient passes the kernels thrice."""

    @staticmethod
    def forward(ctx: Any, kernels: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(kernels)
        return kernels.square().sum(dim=(-2, -1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (kernels,) = ctx.saved_tensors
        return 2 * gradient[..., None, None] * kernels


class OwnConv2d(nn.Module):
    """`ModulatedConv2d` with a kernel and a modulation for each of ``count`` pictures: one grouped convolution.

    The factor of the equalized learning rate scales the style, which is smaller than the kernels.
    """

    def __init__(self, shared: ModulatedConv2d, count: int):
        super().__init__()
        self.up, self.demodulate, self.padding = shared.up, shared.demodulate, shared.padding
        kernels = shared.weight.transpose(1, 2) if self.up else shared.weight  # up: (N, inputs, outputs, 3, 3)
        self.weight = nn.Parameter(kernels.detach().repeat(count, 1, 1, 1, 1))
        self.matrix = nn.Parameter(shared.modulation.weight.detach().repeat(count, 1, 1))
        self.bias = nn.Parameter(shared.modulation.bias.detach().repeat(count, 1))
        self.scale, self.code_scale, self.rate = shared.scale, shared.modulation.scale, shared.modulation.rate
        if self.up:
            self.blur = shared.blur

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """As `ModulatedConv2d.forward`."""
        x, demodulation = self.modulated(x, code)
        return x if demodulation is None else x * demodulation

    def modulated(self, x: Tensor, code: Tensor) -> tuple[Tensor, Tensor | None]:
        """As `ModulatedConv2d.modulated`."""
        style = torch.bmm(self.matrix, code[:, :, None] * self.code_scale)[:, :, 0] + self.bias * self.rate
        style = style * self.scale
        x, kernels = x * style[:, :, None, None], self.weight.flatten(0, 1)  # Eq. 1
        joined, count = x.flatten(0, 1)[None], len(x)
        if self.up:
            joined = functional.conv_transpose2d(joined, kernels, stride=2, groups=count)
            x = self.blur(joined[0].unflatten(0, (count, -1)))
        else:
            joined = functional.conv2d(joined, kernels, padding=self.padding, groups=count)
            x = joined[0].unflatten(0, (count, -1))
        if not self.demodulate:
            return x, None
        squares = SquareSums.apply(self.weight)
        power = torch.bmm(squares.mT if self.up else squares, style.square()[:, :, None])
        return x, torch.rsqrt(power + 1e-8)[..., None]  # Eq. 3


def own_generators(generator: Generator, count: int) -> Generator:
    """A copy that draws picture n of ``count`` with weights of its own, which are at first those of ``generator``.

    Its mapping network is that of ``generator``. All other parameters have a leading dimension of pictures.
    """
    own = copy.deepcopy(generator)
    for parent in list(own.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, ModulatedConv2d):
                setattr(parent, name, OwnConv2d(layer, count))
        if type(parent) in LEADING:
            name, ones = LEADING[type(parent)]
            value = getattr(parent, name).detach()
            setattr(parent, name, nn.Parameter(value.repeat(count, *ones)))
    return own
