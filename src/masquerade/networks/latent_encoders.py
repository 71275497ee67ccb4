"""Encoders into W+: pSp (Richardson et al. 2021, arXiv:2008.00951), e4e (Tov et al. 2021, arXiv:2102.02766), ours.

pSp and e4e: an IR-SE body, a feature pyramid of its last three resolutions, and for each style layer a block that turns
one level into a code (map2style). The names of the tensors are those of the published ``encoder.*``. Other widths and
units give a smaller encoder of the same class.

The small one is cheap on a processor: MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381), which starts from ImageNet,
and linear layers. Codes are written in the principal coordinates of W, in which each coordinate has a deviation of 1
over random faces (as GANSpace, Härkönen et al. 2020, arXiv:2004.02546, finds them).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.inputs import IMAGENET_MEAN, IMAGENET_STD
from masquerade.networks.ir_se import UNITS_50, WIDTHS_50, Bottleneck, build_stages, build_stem
from masquerade.networks.stylegan2_layers import SLOPE, EqualLinear

COARSE, MIDDLE = 3, 7  # the first style layer with middle features, and the first with fine features
REDUCTION = 16  # of the body: four stages halve the image


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
    """pSp: images (N, 3, size, size) in [-1, 1] -> W+ (N, layers, style), each code from one level of the pyramid.

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
        self.input_layer = build_stem(widths[0])
        self.body = build_stages(Bottleneck, widths, units)
        self.ends = [sum(units[: stage + 1]) - 1 for stage in (1, 2, 3)]
        side = size // REDUCTION
        sides = [side] * COARSE + [2 * side] * (MIDDLE - COARSE) + [4 * side] * max(0, layers - MIDDLE)
        self.styles = nn.ModuleList(GradualStyleBlock(widths[-1], style, side) for side in sides[:layers])
        self.latlayer1 = nn.Conv2d(widths[3], widths[-1], 1)
        self.latlayer2 = nn.Conv2d(widths[2], widths[-1], 1)

    def levels(self, images: Tensor) -> list[Tensor]:
        """The feature pyramid, coarse to fine."""
        x = self.input_layer(images)
        maps = []
        for number, block in enumerate(self.body):
            x = block(x)
            if number in self.ends:
                maps.append(x)
        fine, middle, coarse = maps
        p2 = enlarge(coarse, like=middle) + self.latlayer1(middle)
        p1 = enlarge(p2, like=fine) + self.latlayer2(fine)
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
        count = self.layers if stage is None else min(stage + 1, self.layers)
        first, *offsets = self.codes(images, count)
        codes = [first, *(first + offset for offset in offsets), *[first] * (self.layers - count)]
        return torch.stack(codes, dim=1)


def enlarge(x: Tensor, like: Tensor) -> Tensor:
    """``x`` at the size of the map ``like``: bilinear with aligned corners, as in the published encoders."""
    return functional.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=True)


TAPS = {6: (32, 24), 13: (96, 32), 17: (320, 128)}
"""Block of the trunk whose map is used -> its channels, and those that are kept: strides 8, 16 and 32."""
SIDE = 8
"""Side of the maps of the first two, of the image's at 128 pixels; the first one is averaged to it."""
HIDDEN = 640
COMPONENTS = 192
"""Principal coordinates in which a layer's code may differ from the code that all layers share."""


class PrincipalCodes(nn.Module):
    """Principal coordinates of W: a code is the mean plus ``coordinates * deviations @ directions``.

    ``directions``: (style, style), one a row, by falling deviation. Random faces have coordinates of deviation 1.
    """

    deviations: Tensor
    directions: Tensor

    def __init__(self, style: int):
        super().__init__()
        self.register_buffer("deviations", torch.ones(style))
        self.register_buffer("directions", torch.eye(style))

    @torch.no_grad()
    def measure(self, w: Tensor) -> None:
        """Set both from draws of W (M, style), M > style."""
        centered = (w - w.mean(0)).double()
        values, vectors = torch.linalg.eigh(centered.T @ centered / len(w))  # rising
        self.deviations.copy_(values.flip(0).clamp(min=1e-8).sqrt())
        directions = vectors.flip(1).T
        largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
        self.directions.copy_(directions * largest.sign())  # processors differ in which of two signs they find

    def offsets(self, coordinates: Tensor) -> Tensor:
        """Coordinates (..., style) -> codes minus the mean (..., style)."""
        return coordinates * self.deviations @ self.directions

    def coordinates(self, offsets: Tensor) -> Tensor:
        """The inverse of `offsets`."""
        return offsets @ self.directions.T / self.deviations


class MobileEncoder(nn.Module):
    """Images (N, 3, size, size) in [-1, 1] -> W+ minus the mean of W, (N, layers, style).

    One code for all layers, and for each layer an offset to it in the first `COMPONENTS` principal coordinates.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, layers: int, size: int, style: int):
        super().__init__()
        from masquerade.networks import torchvision_internals

        torchvision_internals.ensure()
        from torchvision.models import mobilenet_v2

        self.layers, self.size, self.components = layers, size, min(COMPONENTS, style)
        self.body = mobilenet_v2(weights=None).features[: max(TAPS) + 1]
        self.kept = nn.ModuleDict({str(block): nn.Conv2d(*pair, 1) for block, pair in TAPS.items()})
        sides = {block: size // (16 if block < max(TAPS) else 32) for block in TAPS}
        numbers = sum(TAPS[block][1] * side**2 for block, side in sides.items())
        self.hidden = nn.Sequential(
            nn.Linear(numbers, HIDDEN), nn.LeakyReLU(SLOPE), nn.Linear(HIDDEN, HIDDEN), nn.LeakyReLU(SLOPE)
        )
        self.shared = nn.Linear(HIDDEN, style)
        self.own = nn.Linear(HIDDEN, layers * self.components)
        self.principal = PrincipalCodes(style)
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(IMAGENET_STD)[:, None, None], persistent=False)

    def start_from_imagenet(self) -> None:
        """Copy the trunk from the installed weights. All layers start with one code, near the mean of W."""
        from masquerade.networks.mobilenet_v2 import load_network

        published: Any = load_network()
        self.body.load_state_dict(published.features[: max(TAPS) + 1].state_dict())
        with torch.no_grad():
            self.shared.weight.mul_(0.1)
        nn.init.zeros_(self.own.weight)
        nn.init.zeros_(self.own.bias)

    def train(self, mode: bool = True) -> "MobileEncoder":
        """As in PyTorch, but batch normalizations keep ImageNet's statistics: batches are small."""
        super().train(mode)
        for module in self.body.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def coordinates(self, images: Tensor) -> Tensor:
        """Images -> principal coordinates of the codes, (N, layers, style)."""
        x = ((images + 1) / 2 - self.mean) / self.std
        x, maps = x.contiguous(memory_format=torch.channels_last), []
        for number, block in enumerate(self.body):
            x = block(x)
            if number in TAPS:
                reduced = functional.leaky_relu(self.kept[str(number)](x), SLOPE)
                maps.append(functional.avg_pool2d(reduced, 2) if number == min(TAPS) else reduced)
        hidden = self.hidden(torch.cat([part.flatten(1) for part in maps], 1))
        shared_code, offsets = self.shared(hidden), self.own(hidden).view(-1, self.layers, self.components)
        return shared_code[:, None] + functional.pad(offsets, (0, shared_code.shape[1] - self.components))

    def forward(self, images: Tensor) -> Tensor:
        return self.principal.offsets(self.coordinates(images).float())
