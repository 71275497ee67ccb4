"""Encoders into W+: pSp (Richardson et al. 2021, arXiv:2008.00951) and e4e (Tov et al. 2021, arXiv:2102.02766).

An IR-SE body, a feature pyramid of its last three resolutions, and for each style layer a block that turns one of
them into a code (map2style). The names of the tensors are those of the published ``encoder.*``; a narrower encoder is
the same class with other widths and units.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.ir_se import UNITS_50, WIDTHS_50, Bottleneck
from masquerade.networks.stylegan2 import EqualLinear

COARSE, MIDDLE = 3, 7  # the first style layer that looks at the middle, and at the fine, features
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
    """pSp: pictures (N, 3, size, size) in [-1, 1] -> W+ (N, layers, style), each code from its own level.

    ``widths``, ``units``: of the IR-SE body (stem and four stages); depth 50 by default. ``size``: a power of 2.
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
        stem, *stages = widths
        self.size, self.layers = size, layers
        self.input_layer = nn.Sequential(nn.Conv2d(3, stem, 3, 1, 1, bias=False), nn.BatchNorm2d(stem), nn.PReLU(stem))
        blocks, inputs = [], stem
        for outputs, count in zip(stages, units, strict=True):
            for number in range(count):
                blocks.append(Bottleneck(inputs, outputs, stride=2 if number == 0 else 1))
                inputs = outputs
        self.body = nn.Sequential(*blocks)
        self.ends = [sum(units[: stage + 1]) - 1 for stage in (1, 2, 3)]
        side = size // REDUCTION
        sides = [side] * COARSE + [2 * side] * (MIDDLE - COARSE) + [4 * side] * max(0, layers - MIDDLE)
        self.styles = nn.ModuleList(GradualStyleBlock(inputs, style, of) for of in sides[:layers])
        self.latlayer1 = nn.Conv2d(stages[2], inputs, 1)
        self.latlayer2 = nn.Conv2d(stages[1], inputs, 1)

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
        """What the first ``layers`` style blocks say, (N, style) each."""
        levels = self.levels(images)
        of = [0] * COARSE + [1] * (MIDDLE - COARSE) + [2] * max(0, self.layers - MIDDLE)
        return [self.styles[layer](levels[of[layer]]) for layer in range(layers)]

    def forward(self, images: Tensor) -> Tensor:
        return torch.stack(self.codes(images, self.layers), dim=1)


class Encoder4Editing(GradualStyleEncoder):
    """e4e: one code w for all layers, and for layer i > 0 an offset delta_i to it (Tov et al. 2021, section 4.1)."""

    def forward(self, images: Tensor, stage: int | None = None) -> Tensor:
        """``stage``: how many offsets are learnt already (progressive training); None: all."""
        used = self.layers if stage is None else min(stage + 1, self.layers)
        first, *offsets = self.codes(images, used)
        codes = [first, *(first + offset for offset in offsets), *[first] * (self.layers - used)]
        return torch.stack(codes, dim=1)


def enlarged(x: Tensor, like: Tensor) -> Tensor:
    """Bilinear to the size of another map, corners on corners (as the published encoders)."""
    return functional.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=True)
