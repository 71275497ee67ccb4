"""The multi-level attribute encoder: a U-Net whose decoder maps are the attributes of a face.

IdentityDP (Wen et al. 2022), Eq. 8 and Figure 3, after the multi-level attribute encoder of FaceShifter (Li et al.
2019, arXiv:1912.13457).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

SLOPE = 0.1  # of every LeakyReLU: IdentityDP, Figure 3


class AttributeEncoder(nn.Module):
    """r_att(X) = {r_att^1(X), ..., r_att^n(X)}, n = len(widths) + 1, from the coarsest map to the finest (Eq. 8).

    ``widths``: channels after each stride-2 convolution of the encoder. The published network has
    (32, 64, 128, 256, 512, 1024, 1024), which gives n = 8 maps of 2 x 2 to 256 x 256 for pictures of 256 x 256 pixels.

    Input (N, 3, S, S) in [-1, 1], S a multiple of ``2 ** len(widths)``. Output: n maps; map k (from 0) is
    (N, channels[k], s * 2 ** k, s * 2 ** k) with s = S / 2 ** len(widths).
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        into = [3, *widths[:-1]]
        self.down = nn.ModuleList(
            _block(nn.Conv2d(a, b, 4, 2, 1, bias=False), b) for a, b in zip(into, widths, strict=True)
        )
        # The decoder mirrors the encoder: it changes each map to the width of its skip connection and stacks both.
        beside = list(widths[-2::-1])
        deep = [widths[-1], *(2 * width for width in beside[:-1])]
        self.up = nn.ModuleList(
            _block(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), b) for a, b in zip(deep, beside, strict=True)
        )
        self.channels = channels(widths)

    def forward(self, images: Tensor) -> list[Tensor]:
        skips, features = [], images
        for down in self.down:
            features = down(features)
            skips.append(features)
        maps = [skips.pop()]
        for up in self.up:
            maps.append(torch.cat([up(maps[-1]), skips.pop()], dim=1))
        # The finest map has no skip connection: it is the enlarged previous map (FaceShifter). Corners are aligned, as
        # in `aad.FusionGenerator`.
        return [*maps, interpolate(maps[-1], scale_factor=2, mode="bilinear", align_corners=True)]


def channels(widths: Sequence[int]) -> tuple[int, ...]:
    """Channels of the n attribute maps, coarsest first: (1024, 2048, 1024, 512, 256, 128, 64, 64) as published."""
    stacked = [2 * width for width in widths[-2::-1]]
    return (widths[-1], *stacked, stacked[-1])


def _block(convolution: nn.Module, width: int) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(width), nn.LeakyReLU(SLOPE))
