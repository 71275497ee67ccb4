"""A small U-Net that changes an image by what it adds to it."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pixel_shuffle, pixel_unshuffle


class Restorer(nn.Module):
    """Images (N, 3, S, S) in [-1, 1] -> images of the same shape; S is a multiple of 2 ** len(widths).

    U-Net (Ronneberger et al. 2015) with ``widths`` channels at each size, from S / 2 on: four pixels of the image are
    the channels of one of its own (Shi et al. 2016), which saves three quarters of the time. Its output is added to the
    image. The last layer is zero at the start, so that an untrained network changes nothing.
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        self.down = nn.ModuleList(_two(into, out) for into, out in pairwise([12, *widths]))
        self.up = nn.ModuleList(_two(deep + wide, wide) for wide, deep in pairwise(widths))
        self.last = nn.Conv2d(widths[0], 12, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        assert self.last.bias is not None
        nn.init.zeros_(self.last.bias)

    def forward(self, images: Tensor) -> Tensor:
        features, skips = pixel_unshuffle(images, 2), []
        for number, down in enumerate(self.down):
            features = down(nn.functional.avg_pool2d(features, 2) if number else features)
            skips.append(features)
        skips.pop()
        for up in reversed(self.up):
            features = up(torch.cat([interpolate(features, scale_factor=2.0, mode="nearest"), skips.pop()], dim=1))
        return (images + pixel_shuffle(self.last(features), 2)).clamp(-1, 1)


def _two(into: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(into, out, 3, padding=1),
        nn.GroupNorm(1, out),
        nn.SiLU(),
        nn.Conv2d(out, out, 3, padding=1),
        nn.SiLU(),
    )
