"""The layers of StyleGAN2 (Karras et al. 2020, arXiv:1912.04958): linear layers, filter, modulated convolution, noise.

The names of their tensors are those of the published code, so that published weights load strictly.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core import seeding

SLOPE, GAIN = 0.2, math.sqrt(2.0)  # of the leaky rectifiers


def activate(x: Tensor) -> Tensor:
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
        return activate(super().forward(x))


class PixelNorm(nn.Module):
    """Scales each vector to a mean square of 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-8)


TAPS = (1.0, 3.0, 3.0, 1.0)


class LowPass(nn.Module):
    """The separable filter [1, 3, 3, 1], with ``up`` - 1 zeros inserted between the pixels; keeps the brightness."""

    kernel: Tensor
    enlarging: Tensor | None

    def __init__(self, up: int, padding: tuple[int, int]):
        super().__init__()
        taps = torch.tensor(TAPS)
        kernel = taps[:, None] * taps[None, :]
        self.register_buffer("kernel", kernel / kernel.sum() * 4)
        self.up, self.padding = up, padding
        self.register_buffer("enlarging", None, persistent=False)

    def quicken(self, size: int) -> None:
        """From now on, enlarge images (N, C, size, size) by two products of matrices. Only for ``up`` = 2."""
        taps, inside = torch.tensor(TAPS, device=self.kernel.device), slice(3 - self.padding[0], self.padding[1] - 2)
        ones = torch.eye(size, device=taps.device)[:, None]
        columns = functional.conv_transpose1d(ones, taps[None, None] / taps.sum() * 2, stride=2)
        self.enlarging = columns[:, 0, inside].T.contiguous()

    def forward(self, x: Tensor) -> Tensor:
        if self.enlarging is not None:
            return self.enlarging @ x @ self.enlarging.T
        channels = x.shape[1]
        kernel = self.kernel.flip(0, 1).expand(channels, 1, 4, 4)
        if self.up == 2:  # a cropped transposed convolution inserts the zeros and filters in one step
            first, last = 3 - self.padding[0], 2 - self.padding[1]
            x = functional.conv_transpose2d(x, self.kernel.expand(channels, 1, 4, 4), stride=2, groups=channels)
            return x[..., first : x.shape[-2] - last, first : x.shape[-1] - last]
        first, last = self.padding
        return functional.conv2d(functional.pad(x, (first, last, first, last)), kernel, groups=channels)


class ModulatedConv2d(nn.Module):
    """A convolution whose weights depend on the style: Karras et al. 2020, Eq. 1 and 3.

    Scaling the weights for each image equals scaling the input by the style and the output by the demodulation, which
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


class LatentGenerator(nn.Module):
    """What generators with a code for each of ``layers`` layers share. ``latent_avg``: the mean of W, (D,)."""

    latent_avg: Tensor
    layers: int
    style_width: int

    def truncate(self, w: Tensor, psi: float) -> Tensor:
        """W or W+ moved towards the mean: w' = mean + psi (w - mean) (Karras et al. 2019, appendix B)."""
        return self.latent_avg + psi * (w - self.latent_avg)

    def broadcast(self, w: Tensor) -> Tensor:
        """W (N, D) -> W+ (N, L, D): the same code for every layer."""
        return w[:, None].expand(-1, self.layers, -1)

    def split_codes(self, w_plus: Tensor | Sequence[Tensor]) -> list[Tensor]:
        """W+ (N, L, D), or its L codes -> its L codes (N, D). Raises ValueError if there are others."""
        codes = list(w_plus.unbind(1) if isinstance(w_plus, Tensor) and w_plus.ndim == 3 else w_plus)
        shape = (len(codes), codes[0].shape[-1])
        if codes[0].ndim != 2 or shape != (self.layers, self.style_width):
            raise ValueError(f"W+ must be (N, {self.layers}, {self.style_width}), not (N, {shape[0]}, {shape[1]})")
        return codes


NOISE_SEED = 0
"""Seed of the fixed noise of a generator that is trained here, and of one whose published file holds none."""


def draw_noise_maps(layers: int, seed: int) -> list[Tensor]:
    """The noise of each of ``layers`` convolutions: standard normal (1, 1, S, S), S = 4, 8, 8, 16, 16, ... pixels."""

    def drawn(layer: int) -> np.ndarray:
        side = 2 ** ((layer + 5) // 2)
        return seeding.make_generator(seed, "noise map", layer).standard_normal((1, 1, side, side), dtype=np.float32)

    return [torch.from_numpy(drawn(layer)) for layer in range(layers)]
