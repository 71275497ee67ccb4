"""The modulated convolution of StyleGAN2 (Karras et al. 2020, arXiv:1912.04958)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.equalized import EqualLinear
from masquerade.networks.low_pass import LowPass


class ModulatedConv2d(nn.Module):
    """A convolution whose weights depend on the style: Karras et al. 2020, Eq. 1 and 3.

    Scaling the weights for each picture equals scaling the input by the style and the output by the demodulation, which
    needs only one convolution for the whole batch. With a kernel of one pixel it is a product of matrices, and the
    weights are scaled, which are smaller than the map.
    """

    folded: Tensor | None

    def __init__(self, inputs: int, outputs: int, kernel: int, style: int, demodulate: bool = True, up: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, outputs, inputs, kernel, kernel))
        self.modulation = EqualLinear(style, inputs, bias=1.0)
        self.scale, self.demodulate, self.up = 1 / math.sqrt(inputs * kernel**2), demodulate, up
        self.padding, self.narrowing = kernel // 2, outputs < inputs
        if up:
            self.blur = LowPass(up=1, padding=(1, 1))
        self.register_buffer("folded", None, persistent=False)

    def fold(self) -> None:
        """From now on, enlarge and filter in one step, with kernels of 6 x 6 pixels. Needs ``up`` and frozen weights.

        It is for tensor cores of a GPU and fewer outputs than inputs: benchmarks/gpu.md.
        """
        weight = (self.weight[0] * self.scale).transpose(0, 1)  # (inputs, outputs, 3, 3)
        kernels = functional.pad(weight.reshape(-1, 1, 3, 3), (3, 3, 3, 3))
        filtered = functional.conv2d(kernels, self.blur.kernel[None, None])  # the filter is symmetric
        self.folded = filtered.view(*weight.shape[:2], 6, 6).detach()

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """x (N, inputs, H, W), code (N, style) -> (N, outputs, H, W), twice the size if ``up``."""
        x, demodulation = self.modulated(x, code)
        return x if demodulation is None else x * demodulation

    def modulated(self, x: Tensor, code: Tensor) -> tuple[Tensor, Tensor | None]:
        """The output before the demodulation, and the demodulation (N, outputs, 1, 1), or None if there is none."""
        style = self.modulation(code)
        weight = self.weight[0] * self.scale
        if not self.padding:
            per_picture = weight[:, :, 0, 0] * style[:, None]  # Eq. 1: (N, outputs, inputs)
            x = torch.bmm(per_picture, x.flatten(2)).unflatten(2, x.shape[2:])
        elif self.up:
            x = x * style[:, :, None, None]  # Eq. 1, on the input
            x = self._enlarged(x, weight)
        else:
            x = functional.conv2d(x * style[:, :, None, None], weight, padding=self.padding)
        if not self.demodulate:
            return x, None
        power = functional.linear(style.square(), weight.square().sum(dim=(2, 3)))
        return x, torch.rsqrt(power + 1e-8)[:, :, None, None]  # Eq. 3

    def _enlarged(self, x: Tensor, weight: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, 2H, 2W)."""
        if self.folded is not None:
            return functional.conv_transpose2d(x, self.folded, stride=2, padding=2)
        return self.blur(functional.conv_transpose2d(x, weight.transpose(0, 1), stride=2))
