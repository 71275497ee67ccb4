"""A discriminator of features (Sauer et al. 2021, Projected GANs Converge Faster, arXiv:2111.01007).

Pictures pass through a frozen network that was trained on ImageNet (EfficientNet-Lite1, as in the paper), and through
fixed random layers that mix its channels and its scales. Only small heads learn, one a scale. docs/generator.md lists
what is simpler than in the published code.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from masquerade.core import seeding
from masquerade.networks import deterministic, efficientnet_lite, efficientnet_lite_internals
from masquerade.networks.inputs import differentiated

TAPS = (4, 7, 15, 21)  # the stage after which features are taken, of the stem and 21 blocks: at 1/4, 1/8, 1/16, 1/32
WIDTHS = (24, 40, 112, 320)  # channels of these
MIXED = (32, 48, 64, 96)  # channels after the mixing
HEAD = 64  # channels of a head
SLOPE = 0.2


class Projection(nn.Module):
    """Pictures (N, 3, S, S) in [-1, 1] -> four maps of features, from fine to coarse. Nothing in it learns.

    ``side``: pictures are resized to it, in pixels, a multiple of 32. The random layers depend on nothing else.
    """

    def __init__(self, side: int):
        super().__init__()
        self.side = side
        network: Any = efficientnet_lite_internals.quick(differentiated(efficientnet_lite.network(1)))
        self.blocks = nn.ModuleList(efficientnet_lite_internals.blocks(network)[: TAPS[-1] + 1])
        channels = [nn.Conv2d(*widths, 1) for widths in zip(WIDTHS, MIXED, strict=True)]
        scales = [nn.Conv2d(MIXED[at], MIXED[at - 1], 3, padding=1) for at in (3, 2, 1)]
        draw = torch.Generator().manual_seed(seeding.derive(0, "projection"))
        for layer in (*channels, *scales):
            nn.init.kaiming_normal_(layer.weight, generator=draw)
            nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]
        self.channels, self.scales = nn.ModuleList(channels), nn.ModuleList(scales)
        self.requires_grad_(False)

    def forward(self, images: Tensor) -> list[Tensor]:
        smaller, size = self.side < images.shape[-1], (self.side, self.side)
        x = deterministic.resized(images, size) if smaller else functional.interpolate(images, size, mode="bilinear")
        x = ((x + 1) / 2 - efficientnet_lite.MEAN[0]) / efficientnet_lite.STD[0]
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
