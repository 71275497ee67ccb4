"""Discriminators of images: StyleGAN2's, one of a frozen network's features (Projected GANs), and one of patches.

The projected one (Sauer et al. 2021, Projected GANs Converge Faster, arXiv:2111.01007) passes images through a frozen
network that was trained on ImageNet (EfficientNet-Lite1, as in the paper), and through fixed random layers that mix its
channels and its scales. Only small heads learn, one a scale. docs/backbones.md lists what is simpler than in the
published code. The multi-scale one of patches is that of pix2pixHD and SPADE (Park et al. 2019, arXiv:1903.07291,
appendix A), which IdentityDP (Wen et al. 2022) cites.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from masquerade.core import seeding
from masquerade.networks import deterministic, efficientnet_lite_internals
from masquerade.networks.inputs import prepare_gradients
from masquerade.networks.stylegan2_layers import ActivatedLinear, EqualLinear, LowPass, activate

GROUP = 4  # largest number of images over which the deviation is computed


def gradient_penalty(
    score: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, draw: np.random.Generator
) -> Tensor:
    """(|grad D(mixture)| - 1)^2 of random mixtures of real and generated images (Gulrajani et al. 2017, Eq. 3)."""
    share = torch.from_numpy(draw.random((len(real), 1, 1, 1), dtype=np.float32)).to(real)
    mixed = torch.lerp(real, fake, share).requires_grad_(True)
    slope = torch.autograd.grad(score(mixed).sum(), mixed, create_graph=True)[0]  # (batch, 3, S, S)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


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
        return activate(x) if self.active else x


class ResidualBlock(nn.Module):
    """Two convolutions, of which the second halves the image, and a 1 x 1 shortcut."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv1 = EqualConv2d(inputs, inputs, 3)
        self.conv2 = EqualConv2d(inputs, outputs, 3, down=True)
        self.skip = EqualConv2d(inputs, outputs, 1, down=True, active=False)

    def forward(self, x: Tensor) -> Tensor:
        return (self.conv2(self.conv1(x)) + self.skip(x)) / math.sqrt(2)


class Discriminator(nn.Module):
    """Images (N, ``inputs``, size, size) -> scores (N, 1), unbounded; larger means more real.

    ``channels``: at 4, 8, ... ``size`` pixels, as for the generator. ``inputs``: 3, or more with what the images are
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
        return self.final_linear(self.final_conv(torch.cat([x, compute_deviation(x)], dim=1)).flatten(1))


def compute_r1(scores: Tensor, real: Tensor) -> Tensor:
    """The R1 penalty: the squared slope of the scores at the real inputs (Mescheder et al. 2018, Eq. 9), the mean."""
    slope = torch.autograd.grad(scores.sum(), real, create_graph=True)[0]
    return slope.square().sum(dim=tuple(range(1, slope.ndim))).mean()


def choose_group_size(count: int) -> int:
    """The number of images over which the deviation is computed: the largest divisor of ``count`` up to GROUP."""
    return next(size for size in range(min(GROUP, count), 0, -1) if count % size == 0)


def compute_deviation(x: Tensor) -> Tensor:
    """Minibatch standard deviation (Karras et al. 2018, section 3): (N, C, H, W) -> (N, 1, H, W).

    Averaged over channels and positions, within groups of `choose_group_size` images.
    """
    count, _, height, width = x.shape
    together = choose_group_size(count)
    spread = x.view(together, -1, *x.shape[1:]).var(dim=0, unbiased=False).add(1e-8).sqrt()
    mean = spread.mean(dim=(1, 2, 3))
    return mean.repeat(together).view(count, 1, 1, 1).expand(-1, 1, height, width)


TAPS = (4, 7, 15, 21)  # the stage after which features are taken, of the stem and 21 blocks: at 1/4, 1/8, 1/16, 1/32
WIDTHS = (24, 40, 112, 320)  # channels of these
MIXED = (32, 48, 64, 96)  # channels after the mixing
HEAD = 64  # channels of a head
SLOPE = 0.2  # of every LeakyReLU: SPADE, appendix A, and the code of Projected GANs


class Projection(nn.Module):
    """Images (N, 3, S, S) in [-1, 1] -> four maps of features, from fine to coarse. Nothing in it learns.

    ``side``: images are resized to it, in pixels, a multiple of 32. The random layers depend on nothing else.
    """

    def __init__(self, side: int):
        super().__init__()
        self.side = side
        network: Any = efficientnet_lite_internals.quicken(
            prepare_gradients(efficientnet_lite_internals.load_network(1))
        )
        self.blocks = nn.ModuleList(efficientnet_lite_internals.list_blocks(network)[: TAPS[-1] + 1])
        channels = [nn.Conv2d(*widths, 1) for widths in zip(WIDTHS, MIXED, strict=True)]
        scales = [nn.Conv2d(MIXED[at], MIXED[at - 1], 3, padding=1) for at in (3, 2, 1)]
        draw = torch.Generator().manual_seed(seeding.derive_seed(0, "projection"))
        for layer in (*channels, *scales):
            nn.init.kaiming_normal_(layer.weight, generator=draw)
            nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]
        self.channels, self.scales = nn.ModuleList(channels), nn.ModuleList(scales)
        self.requires_grad_(False)

    def forward(self, images: Tensor) -> list[Tensor]:
        smaller, size = self.side < images.shape[-1], (self.side, self.side)
        x = deterministic.resize(images, size) if smaller else functional.interpolate(images, size, mode="bilinear")
        x = ((x + 1) / 2 - efficientnet_lite_internals.MEAN[0]) / efficientnet_lite_internals.STD[0]
        maps = []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in TAPS:
                maps.append(self.channels[len(maps)](x))
        mixed = [maps.pop()]
        for layer in self.scales:  # from coarse to fine: each scale gets the features of the coarser ones
            finer = maps.pop()
            coarser = functional.interpolate(layer(mixed[-1]), size=finer.shape[-2:], mode="bilinear")
            mixed.append(coarser + finer)
        return mixed[::-1]


class Heads(nn.Module):
    """Four maps of features -> four maps of scores, (N, K) each, unbounded; larger means more real.

    Each halves its map to the size of the coarsest one. All layers have spectral normalization.
    """

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(self._head(*head) for head in zip(MIXED, (3, 2, 1, 0), strict=True))

    @staticmethod
    def _head(width: int, halvings: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for _ in range(halvings):
            layers += [spectral_norm(nn.Conv2d(width, HEAD, 4, stride=2, padding=1)), nn.LeakyReLU(SLOPE)]
            width = HEAD
        layers += [spectral_norm(nn.Conv2d(width, HEAD, 3, padding=1)), nn.LeakyReLU(SLOPE)]
        return nn.Sequential(*layers, spectral_norm(nn.Conv2d(HEAD, 1, 3, padding=1)))

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        return [head(x).flatten(1) for head, x in zip(self.heads, maps, strict=True)]


class PatchDiscriminator(nn.Module):
    """One scale: ``depth`` convolutions 4 x 4, the last with stride 1, then one to a map of scores (N, 1, h, w)."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 2), nn.LeakyReLU(SLOPE)]
        out = width
        for level in range(1, depth):
            into, out = (min(width * 2**step, 8 * width) for step in (level - 1, level))
            convolution = nn.Conv2d(into, out, 4, 1 if level == depth - 1 else 2, 2, bias=False)
            layers += [spectral_norm(convolution), nn.InstanceNorm2d(out), nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(out, 1, 4, 1, 2))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class MultiScale(nn.Module):
    """One discriminator for each scale: the first gets the images, each further one images half the size.

    Input (N, 3, S, S). Output: one map of scores for each scale, finest first.
    """

    def __init__(self, discriminators: Iterable[nn.Module]):
        super().__init__()
        self.scales = nn.ModuleList(discriminators)

    def forward(self, images: Tensor) -> list[Tensor]:
        scores = []
        for level, discriminator in enumerate(self.scales):
            if level:
                images = functional.avg_pool2d(images, 3, 2, 1, count_include_pad=False)
            scores.append(discriminator(images))
        return scores


class MultiScaleDiscriminator(MultiScale):
    """The same network, with other weights, on images halved 0, 1, ..., ``scales`` - 1 times.

    Input (N, 3, S, S) in [-1, 1]. Output: ``scales`` maps of scores, finest first; larger means more real.
    """

    def __init__(self, width: int, depth: int, scales: int):
        super().__init__(PatchDiscriminator(width, depth) for _ in range(scales))
