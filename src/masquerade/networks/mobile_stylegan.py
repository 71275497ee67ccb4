"""MobileStyleGAN: a small generator that was distilled from StyleGAN2 (Belousov 2021, arXiv:2104.04767).

It has the codes of StyleGAN2, a style for each layer (W+). Convolutions are separable, resolutions are doubled by the
inverse Haar wavelet, the demodulation is a constant inside the weights, and the noise is fixed. The published network
draws 1024 pixels. A head of our own draws 256 pixels from the features of that size, in half of the time.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.stylegan2 import count_style_layers
from masquerade.networks.stylegan2_layers import SLOPE, LatentGenerator, PixelNorm
from masquerade.training import precision

STYLE = 512
CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64)
"""Channels of the features at 4, 8, ... 512 pixels."""
MAPPING = 8
SIZE, LARGE = 256, 1024
"""Sides of the images of our head and of the published network."""
LEVELS = {SIZE: 6, LARGE: 7}
"""Times that the features are doubled for images of a size. The last doubling to LARGE is that of the colors."""
ORDER = torch.channels_last
Begun = tuple[Tensor, int] | None
"""Features, and how often they were doubled; None: nothing."""
HAAR = ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, -1.0, -1.0), (1.0, -1.0, 1.0, -1.0), (1.0, -1.0, -1.0, 1.0))
"""Four coefficients [low, across, down, both] -> a square of 2 x 2 pixels, row by row."""


def inverse_haar(x: Tensor) -> Tensor:
    """Coefficients (N, 4 C, H, W), in blocks [low, three times high] that are halved already -> (N, C, 2 H, 2 W)."""
    count, channels, height, width = x.shape
    blocks = x.permute(0, 2, 3, 1).view(count, height, width, 4, channels // 4)
    pixels = x.new_tensor(HAAR) @ blocks  # (N, H, W, 2 x 2 pixels, C)
    doubled = pixels.view(count, height, width, 2, 2, channels // 4).transpose(2, 3)
    return doubled.reshape(count, 2 * height, 2 * width, channels // 4).permute(0, 3, 1, 2)


def modulate(x: Tensor, style: nn.Linear, code: Tensor) -> Tensor:
    """Features (N, C, H, W) times the style (N, C) of a code (N, STYLE): the modulation."""
    return x * style(code)[:, :, None, None]


class StyledConv(nn.Module):
    """Modulation, a depthwise 3 x 3 and a pointwise convolution (or one full 3 x 3), noise, bias and rectifier."""

    noise: Tensor

    def __init__(self, inputs: int, outputs: int, size: int, separable: bool = True):
        super().__init__()
        self.style = nn.Linear(STYLE, inputs)
        self.depthwise = nn.Parameter(torch.empty(inputs, 1, 3, 3)) if separable else None
        side = 1 if separable else 3
        self.kernel = nn.Parameter(torch.empty(outputs, inputs, side, side))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.register_buffer("noise", torch.empty(1, 1, size, size))

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        x = modulate(x, self.style, code)
        if self.depthwise is not None:
            x = functional.conv2d(x, self.depthwise, padding=1, groups=x.shape[1])
        x = functional.conv2d(x, self.kernel, self.bias, padding=self.kernel.shape[-1] // 2)
        # in the type of the convolution: a sum with 32 bits would double the memory that all that follows moves
        return functional.leaky_relu_(x.add_(self.noise.to(x.dtype)), SLOPE)  # in place: memory is what limits it


class Level(nn.Module):
    """Doubles the resolution: a modulated inverse wavelet and two convolutions. It takes the codes of two layers."""

    def __init__(self, inputs: int, outputs: int, size: int):
        super().__init__()
        self.up = nn.Linear(STYLE, inputs)
        self.conv1 = StyledConv(inputs // 4, outputs, size)
        self.conv2 = StyledConv(outputs, outputs, size)

    def forward(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        return self.conv2(self.conv1(inverse_haar(modulate(x, self.up, first)), first), second)


class Head(nn.Module):
    """A modulated 1 x 1 convolution to the colors: features (N, C, H, W) -> (N, ``outputs``, H, W)."""

    def __init__(self, channels: int, outputs: int):
        super().__init__()
        self.style = nn.Linear(STYLE, channels)
        self.kernel = nn.Parameter(torch.empty(outputs, channels, 1, 1))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        return functional.conv2d(modulate(x, self.style, code), self.kernel, self.bias)


class MobileStyleGAN(LatentGenerator):
    """Latent vectors -> images (N, 3, 256, 256), approximately in [-1, 1], of people who do not exist.

    Z: standard normal (N, 512). W = ``map(z)``: (N, 512). W+: (N, 14, 512), a code for each layer. The layers are those
    of a StyleGAN2 of 1024 pixels up to its features of 256 pixels, so layer k here is its layer k: 0 at 4 pixels, 1 and
    2 at 8, ... 11 and 12 at 256. Layer 13 is our head's.
    """

    size = drawn = SIZE
    style_width = STYLE
    layers = count_style_layers(SIZE)
    mixed = True
    """Whether convolutions are computed with bfloat16 where that pays. Images differ by less than a gray level (45 to
    52 dB)."""

    def __init__(self):
        super().__init__()
        self.norm = PixelNorm()
        self.mapping = nn.ModuleList(nn.Linear(STYLE, STYLE) for _ in range(MAPPING))
        self.input = nn.Parameter(torch.empty(1, CHANNELS[0], 4, 4))
        self.conv = StyledConv(CHANNELS[0], CHANNELS[0], 4, separable=False)
        self.levels = nn.ModuleList(Level(*pair, 8 * 2**level) for level, pair in enumerate(pairwise(CHANNELS)))
        self.head = Head(CHANNELS[LEVELS[SIZE]], 3)
        self.large_head = Head(CHANNELS[LEVELS[LARGE]], 12)
        self.register_buffer("latent_avg", torch.zeros(STYLE))

    @property
    def at_once(self) -> int:
        """Number of images to draw at a time without gradients: more do not fit into the caches of a processor."""
        return 8

    def quicken(self) -> None:
        """Bring the kernels into channels-last order: depthwise convolutions are then 2 to 4 times as fast."""
        for parameter in self.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=ORDER)

    def published_layers(self, first: int, last: int) -> range:
        """The layers ``first`` to ``last`` of a StyleGAN2 of 1024 pixels: here they have the same numbers."""
        return range(first, last + 1)

    def affine_maps(self, layer: int) -> list[nn.Linear]:
        """The maps from the code of a layer to styles: all that the code acts by."""
        if layer == 0:
            return [self.conv.style]
        if layer == self.layers - 1:
            return [self.head.style]
        level, second = self.levels[(layer - 1) // 2], layer % 2 == 0
        # pyright takes the entries of a ModuleList for plain modules
        return [level.conv2.style] if second else [level.up, level.conv1.style]  # pyright: ignore

    def map(self, z: Tensor) -> Tensor:
        """Z -> W, (N, 512)."""
        x = self.norm(z)
        for layer in self.mapping:
            x = functional.leaky_relu(layer(x), SLOPE) * math.sqrt(2)
        return x

    def synthesize(self, w_plus: Tensor | Sequence[Tensor], begun: Begun = None) -> Tensor:
        """W+ (N, 14, 512), or its 14 codes (N, 512) -> images (N, 3, 256, 256). ``begun``: what `begin` computed."""
        codes = self.split_codes(w_plus)
        with precision.use_bfloat16(self.latent_avg.device, self.mixed, frozen=True):
            return self.head(self.features(codes, LEVELS[SIZE], begun), codes[-1]).float()

    def begin(self, w_plus: Tensor | Sequence[Tensor], known: int) -> Begun:
        """What the first ``known`` codes of W+ alone determine, for many calls of `synthesize`."""
        levels = min((known - 1) // 2, LEVELS[SIZE])
        with precision.use_bfloat16(self.latent_avg.device, self.mixed, frozen=True):
            return (self.features(self.split_codes(w_plus), levels), levels) if known else None

    def synthesize_large(self, w_plus: Tensor | Sequence[Tensor]) -> Tensor:
        """W+ as in `synthesize` -> the published network's images (N, 3, 1024, 1024).

        That network has two more layers and a head of its own; they get the code of layer 13.
        """
        codes = self.split_codes(w_plus)
        codes = [*codes, *codes[-1:] * 2]
        with precision.use_bfloat16(self.latent_avg.device, self.mixed, frozen=True):
            return inverse_haar(self.large_head(self.features(codes, LEVELS[LARGE]), codes[-1])).float()

    def features(self, codes: Sequence[Tensor], levels: int, begun: Begun = None) -> Tensor:
        """Codes (N, 512) -> features (N, C, 4 2^levels, 4 2^levels); they need 1 + 2 ``levels`` codes."""
        if begun is None:
            x = self.input.expand(len(codes[0]), -1, -1, -1).contiguous(memory_format=ORDER)
            begun = self.conv(x, codes[0]), 0
        x, first = begun
        for number in range(first, levels):
            x = self.levels[number](x, codes[2 * number + 1], codes[2 * number + 2])
        return x

    def forward(self, z: Tensor, psi: float = 1.0) -> Tensor:
        """Z -> images, truncated by ``psi``."""
        return self.synthesize(self.broadcast(self.truncate(self.map(z), psi)))
