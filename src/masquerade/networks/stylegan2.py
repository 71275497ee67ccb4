"""The style-based generator of StyleGAN2 (Karras et al. 2020, arXiv:1912.04958), in plain PyTorch.

The names of its tensors are those of the rosinality layout (``g_ema``), so that published weights load strictly. Other
channels give a smaller generator of the same class. It has a style code for each layer (W+), RGB skip connections,
up-sampling by a transposed convolution and a low-pass filter, and noise that is fixed, fresh or left out.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.stylegan2_layers import (
    GAIN,
    NOISE_SEED,
    SLOPE,
    ActivatedLinear,
    LatentGenerator,
    LowPass,
    ModulatedConv2d,
    PixelNorm,
    draw_noise_maps,
)
from masquerade.training import distributed

CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64, 32)  # at 4, 8, ... 1024 pixels: config F
Noise = Literal["fixed", "fresh", "none"]
Begun = tuple[Tensor, list[Tensor], int] | None
"""Features, images at 4, 8, ... pixels, and how many of `convs` gave the features; None: nothing."""
PUBLISHED_LAYERS = 18
"""Style layers of the generator of 1024 pixels, in which the papers count."""


def count_style_layers(size: int) -> int:
    """The number of style codes of a generator of ``size`` x ``size`` pixels: 2 log2(size) - 2."""
    return 2 * int(math.log2(size)) - 2


def scale_layers(first: int, last: int, layers: int) -> range:
    """The layers ``first`` to ``last`` of 18, scaled to a generator with ``layers`` style layers."""
    share = layers / PUBLISHED_LAYERS
    start = round(first * share)
    return range(start, max(start + 1, -int(-(last + 1) * share // 1)))


def in_channels_last(x: Tensor) -> bool:
    """Whether the channels of a pixel lie side by side in memory, (N, H, W, C)."""
    return not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)


class NoiseInjection(nn.Module):
    """Scales noise (1 or N, 1, H, W) by one learned strength."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, noise: Tensor) -> Tensor:
        return self.weight * noise


class Activation(nn.Module):
    """A bias for each channel and a leaky rectifier: ``activated(scale * x + shift + bias)``, in one pass over x."""

    def __init__(self, channels: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, scale: Tensor, shift: Tensor | None) -> Tensor:
        bias = self.bias.view(-1, x.shape[1], 1, 1)
        # in the type of the convolution: bfloat16 and 32 bits together would give 32 bits
        added = (GAIN * (bias if shift is None else bias + shift)).to(x.dtype)
        if in_channels_last(x):  # the result has the order of the first operand
            added = added.contiguous(memory_format=torch.channels_last)
        return functional.leaky_relu_(torch.addcmul(added, x, (GAIN * scale).to(x.dtype)), SLOPE)


class StyledConv(nn.Module):
    """A modulated 3 x 3 convolution, noise, bias and rectifier."""

    def __init__(self, inputs: int, outputs: int, style: int, up: bool = False):
        super().__init__()
        self.conv = ModulatedConv2d(inputs, outputs, 3, style, up=up)
        self.noise = NoiseInjection()
        self.activate = Activation(outputs)

    def forward(self, x: Tensor, code: Tensor, noise: Tensor | None) -> Tensor:
        x, demodulation = self.conv.modulated(x, code)
        return self.activate(x, demodulation, None if noise is None else self.noise(noise))


class ToRGB(nn.Module):
    """A modulated 1 x 1 convolution to RGB, added to the enlarged image of half the size."""

    def __init__(self, inputs: int, style: int, up: bool = True):
        super().__init__()
        self.conv = ModulatedConv2d(inputs, 3, 1, style, demodulate=False)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))
        if up:
            self.upsample = LowPass(up=2, padding=(2, 1))

    def forward(self, x: Tensor, code: Tensor, skip: Tensor | None = None) -> Tensor:
        out = self.conv(x, code) + self.bias
        return out if skip is None else out + self.upsample(skip)


class ConstantInput(nn.Module):
    """The learned 4 x 4 map, which is the first input of every image."""

    def __init__(self, channels: int):
        super().__init__()
        self.input = nn.Parameter(torch.randn(1, channels, 4, 4))


class Generator(LatentGenerator):
    """Latent vectors -> images (N, 3, S, S), approximately in [-1, 1].

    Z: standard normal (N, D). W = ``map(z)``: (N, D). W+: (N, L, D), a code for each of L = 2 log2(size) - 2 style
    layers. ``latent_avg``: the mean of W, used by the truncation.

    ``size``: 2^k pixels, 8 or more. ``channels``: at 4, 8, ... ``size`` pixels. ``style``: D. ``mapping``: layers of
    the mapping network; ``mapping_rate``: their learning rate relative to the others' (0.01: Karras et al. 2019).
    ``pictures``: S, if the images are to be smaller than ``size``. Each pixel is then the mean of a square, as in the
    published code of pSp, e4e and FALCO (``AdaptiveAvgPool2d((256, 256))``). The attribute ``size`` is S, and ``drawn``
    is the argument ``size``.
    """

    def __init__(
        self,
        size: int = 1024,
        channels: Sequence[int] = CHANNELS,
        style: int = 512,
        mapping: int = 8,
        mapping_rate: float = 0.01,
        pictures: int | None = None,
    ):
        super().__init__()
        pictures = pictures or size
        if len(channels) != int(math.log2(size)) - 1:
            raise ValueError(f"{size} pixels need {int(math.log2(size)) - 1} numbers of channels, not {len(channels)}")
        self.size, self.drawn, self.style_width, self.layers = pictures, size, style, count_style_layers(size)
        layers = [ActivatedLinear(style, style, rate=mapping_rate) for _ in range(mapping)]
        self.style = nn.Sequential(PixelNorm(), *layers)
        self.input = ConstantInput(channels[0])
        self.conv1 = StyledConv(channels[0], channels[0], style)
        self.to_rgb1 = ToRGB(channels[0], style, up=False)
        self.convs, self.to_rgbs = nn.ModuleList(), nn.ModuleList()
        for inputs, outputs in pairwise(channels):
            self.convs.append(StyledConv(inputs, outputs, style, up=True))
            self.convs.append(StyledConv(outputs, outputs, style))
            self.to_rgbs.append(ToRGB(outputs, style))
        self.noises = nn.Module()
        for layer, noise in enumerate(draw_noise_maps(self.layers - 1, NOISE_SEED)):
            self.noises.register_buffer(f"noise_{layer}", torch.empty(noise.shape).copy_(noise))
        self.register_buffer("latent_avg", torch.zeros(style))
        self._order = torch.contiguous_format

    def quicken(self) -> None:
        """From now on, compute channels last, and enlarge in a way that is quick on this device. For frozen weights.

        A CPU enlarges RGB by products of matrices, a GPU with tensor cores the maps by `ModulatedConv2d.fold`. Images
        and gradients stay the same except for rounding.
        """
        self._order = torch.channels_last
        if self.latent_avg.device.type == "cpu":
            for level, to_rgb in enumerate(self.to_rgbs):
                to_rgb.upsample.quicken(4 * 2**level)  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
            return
        for layer in self.convs:
            if isinstance(layer, StyledConv) and layer.conv.up and layer.conv.narrowing:
                layer.conv.fold()

    @property
    def at_once(self) -> int:
        """Number of images to draw at a time without gradients: 32 up to 256 pixels, fewer above for equal memory."""
        return max(1, min(32, 32 * 256**2 // self.drawn**2))

    def published_layers(self, first: int, last: int) -> range:
        """The layers that take the place of ``first`` to ``last`` of 18: see `scale_layers`."""
        return scale_layers(first, last, self.layers)

    def map(self, z: Tensor) -> Tensor:
        """Z -> W, (N, D)."""
        return self.style(z)

    def synthesize(self, w_plus: Tensor | Sequence[Tensor], noise: Noise = "fixed", begun: Begun = None) -> Tensor:
        """W+ (N, L, D) -> images (N, 3, S, S). Deterministic unless ``noise`` is 'fresh'.

        W+ can be given as its L codes (N, D): gradients are then computed only for those that need one. ``begun``: what
        `begin` has computed of the same first codes.
        """
        picture = self._drawn(w_plus, noise, self.layers, begun)[1][-1]
        return picture if self.size == self.drawn else functional.avg_pool2d(picture, self.drawn // self.size)

    def pyramid(self, w_plus: Tensor | Sequence[Tensor], noise: Noise = "fixed") -> list[Tensor]:
        """The images at 4, 8, ... ``drawn`` pixels. Each is the previous one, enlarged, plus its layers' output."""
        return self._drawn(w_plus, noise, self.layers, None)[1]

    def begin(self, w_plus: Tensor | Sequence[Tensor], known: int) -> Begun:
        """What the first ``known`` codes of W+ alone determine with fixed noise, for many calls of `synthesize`."""
        return self._drawn(w_plus, "fixed", known, None) if known else None

    def _drawn(
        self, w_plus: Tensor | Sequence[Tensor], noise: Noise, count: int, begun: Begun
    ) -> tuple[Tensor, list[Tensor], int]:
        """What the first ``count`` codes determine, from ``begun`` on."""
        codes = self.split_codes(w_plus)
        if begun is None:
            x = self.input.input.expand(len(codes[0]), -1, -1, -1).contiguous(memory_format=self._order)
            x = self.conv1(x, codes[0], self._noise(0, x, noise))
            begun = x, [], 0
        x, pictures, done = begun[0], list(begun[1]), begun[2]
        for layer in range(done + 1, count):  # the first convolution of a level takes the code of the colors before it
            if layer % 2 and layer > 2 * len(pictures):
                to_rgb = self.to_rgbs[layer // 2 - 1] if pictures else self.to_rgb1
                pictures.append(to_rgb(x, codes[layer], *pictures[-1:]))
            if layer <= len(self.convs):
                x = self.convs[layer - 1](x, codes[layer], self._noise(layer, x, noise))
                done = layer
        return x, pictures, done

    def forward(self, z: Tensor, psi: float = 1.0, noise: Noise = "fixed") -> Tensor:
        """Z -> images, truncated by ``psi``."""
        return self.synthesize(self.broadcast(self.truncate(self.map(z), psi)), noise)

    def _noise(self, layer: int, x: Tensor, kind: Noise) -> Tensor | None:
        if kind == "none":
            return None
        noise_map = getattr(self.noises, f"noise_{layer}")
        return noise_map if kind == "fixed" else distributed.draw_normal(len(x), *noise_map.shape[1:], like=noise_map)
