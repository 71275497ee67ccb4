"""Encoders into W+: pSp (Richardson et al. 2021, arXiv:2008.00951) and e4e (Tov et al. 2021, arXiv:2102.02766).

An IR-SE body, a feature pyramid of its last three resolutions, and for each style layer a block that turns one level
into a code (map2style). The names of the tensors are those of the published ``encoder.*``. Other widths and units give
a smaller encoder of the same class.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.equalized import EqualLinear
from masquerade.networks.ir_se import UNITS_50, WIDTHS_50, Bottleneck, stages, stem

COARSE, MIDDLE = 3, 7  # the first style layer with middle features, and the first with fine features
REDUCTION = 16  # of the body: four stages halve the picture


class GradualStyleBlock(nn.Module):
    """map2style: convolutions of stride 2 down to one pixel, then a linear layer; (N, inputs, s, s) -> (N, outputs)."""

    def __init__(self, inputs: int, outputs: int, side: int):
        super().__init__()
        layers: list[nn.Module] = []
        for number in range(max(1, int(math.log2(side)))):
            layers += [nn.Conv2d(outputs if number else inputs, outputs, 3, 2, 1), nn.LeakyReLU()]
        self.convs = nn.Sequential(*layers)
        self.linear = EqualLinear(outputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.convs(x).flatten(1))


class GradualStyleEncoder(nn.Module):
    """pSp: pictures (N, 3, size, size) in [-1, 1] -> W+ (N, layers, style), each code from one level of the pyramid.

    ``widths``, ``units``: as in `IRSE`; depth 50 by default. ``size``: a power of 2.
    """

    def __init__(
        self,
        layers: int,
        size: int = 256,
        style: int = 512,
        widths: Sequence[int] = WIDTHS_50,
        units: Sequence[int] = UNITS_50,
    ):
        super().__init__()
        self.size, self.layers = size, layers
        self.input_layer = stem(widths[0])
        self.body = stages(Bottleneck, widths, units)
        self.ends = [sum(units[: stage + 1]) - 1 for stage in (1, 2, 3)]
        side = size // REDUCTION
        sides = [side] * COARSE + [2 * side] * (MIDDLE - COARSE) + [4 * side] * max(0, layers - MIDDLE)
        self.styles = nn.ModuleList(GradualStyleBlock(widths[-1], style, side) for side in sides[:layers])
        self.latlayer1 = nn.Conv2d(widths[3], widths[-1], 1)
        self.latlayer2 = nn.Conv2d(widths[2], widths[-1], 1)

    def levels(self, images: Tensor) -> list[Tensor]:
        """The feature pyramid, coarse to fine."""
        x = self.input_layer(images)
        kept = []
        for number, block in enumerate(self.body):
            x = block(x)
            if number in self.ends:
                kept.append(x)
        fine, middle, coarse = kept
        p2 = enlarged(coarse, like=middle) + self.latlayer1(middle)
        p1 = enlarged(p2, like=fine) + self.latlayer2(fine)
        return [coarse, p2, p1]

    def codes(self, images: Tensor, layers: int) -> list[Tensor]:
        """The codes of the first ``layers`` style layers, (N, style) each."""
        levels = self.levels(images)
        level_of = [0] * COARSE + [1] * (MIDDLE - COARSE) + [2] * max(0, self.layers - MIDDLE)
        return [self.styles[layer](levels[level_of[layer]]) for layer in range(layers)]

    def forward(self, images: Tensor) -> Tensor:
        return torch.stack(self.codes(images, self.layers), dim=1)


class Encoder4Editing(GradualStyleEncoder):
    """e4e: one code w for all layers, and for layer i > 0 an offset delta_i to it (Tov et al. 2021, section 4.1)."""

    def forward(self, images: Tensor, stage: int | None = None) -> Tensor:
        """``stage``: the number of offsets in use (progressive training), or None for all."""
        used = self.layers if stage is None else min(stage + 1, self.layers)
        first, *offsets = self.codes(images, used)
        codes = [first, *(first + offset for offset in offsets), *[first] * (self.layers - used)]
        return torch.stack(codes, dim=1)


def enlarged(x: Tensor, like: Tensor) -> Tensor:
    """``x`` at the size of the map ``like``: bilinear with aligned corners, as in the published encoders."""
    return functional.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=True)
