"""The networks of DartBlur (Jiang et al. 2023): the U-Net of the published code (nets/UNet.py), and a small detector.

The published detectors are RetinaFaces with MobileNet. Ours looks at a picture with one face and finds its box in a
grid; it is trained here (docs/dartblur.md).
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

SLOPE = 0.01  # of every LeakyReLU: torch's default, as the published code has it


class _Down(nn.Sequential):
    """Two convolutions with LeakyReLU, then the largest of 2 x 2 pixels."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(*_active(inputs, outputs), *_active(outputs, outputs), nn.MaxPool2d(2))


class _Up(nn.Sequential):
    """A convolution to four times the channels, whose groups of four become 2 x 2 pixels, and a convolution."""

    def __init__(self, inputs: int, between: int, outputs: int, last: bool = False):
        end = [nn.Conv2d(between, outputs, 3, padding=1)] if last else _active(between, outputs)
        super().__init__(*_active(inputs, 4 * between), nn.PixelShuffle(2), *end)


class DartBlurUNet(nn.Module):
    """A blurred picture (N, 3, S, S) in [-1, 1] and the mask of its boxes (N, 1, S, S) -> a picture of the same shape.

    ``widths``: channels after each of the five halvings (32, 64, 128, 256, 512: published).
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        first, second, third, fourth, fifth = widths
        self.down = nn.ModuleList(_Down(a, b) for a, b in pairwise([4, *widths]))
        self.up4, self.up3 = _Up(fifth, fourth, fourth), _Up(fourth, third, third)
        self.up2, self.up1 = _Up(third, second, second), _Up(2 * second, 3 * first, 3 * first)
        self.up0 = _Up(4 * first, 3 * first, 3, last=True)

    def forward(self, blurred: Tensor, masks: Tensor) -> Tensor:
        features, maps = torch.cat([blurred, masks], dim=1), []
        for down in self.down:
            features = down(features)
            maps.append(features)
        features = self.up4(features) + maps[3]
        features = self.up3(features) + maps[2]
        features = torch.cat([self.up2(features), maps[1]], dim=1)
        features = torch.cat([self.up1(features), maps[0]], dim=1)
        return (self.up0(features) + blurred).tanh()


class GridDetector(nn.Module):
    """Pictures (N, 3, S, S) in [-1, 1] -> (N, 5, s, s) with s = S / 2 ** len(widths).

    For each cell: the logit that the centre of the face is in it, and the box: its centre as shares of the cell, its
    width and height as shares of the picture. There is no batch norm, as a step of its training is differentiated.
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        layers: list[nn.Module] = []
        for into, out in pairwise([3, *widths]):
            layers += [nn.Conv2d(into, out, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(out, out, 3, padding=1)]
            layers += [nn.GroupNorm(1, out), nn.LeakyReLU(0.1)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(widths[-1], 5, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def grid_targets(corners: Tensor, size: int, cells: int) -> Tensor:
    """What a detector should say of boxes (N, 4), left, top, right, bottom in pixels: (N, 5, cells, cells).

    The first channel is 1 in the cell with the centre of the face, else 0; the others are NaN but in that cell.
    """
    centre, sides = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
    position = (centre / size * cells).clamp(0, cells - 1e-4)
    cell = position.long()
    targets = corners.new_full((len(corners), 5, cells, cells), torch.nan)
    targets[:, 0] = 0.0
    rows = torch.arange(len(corners), device=corners.device)
    values = torch.cat([torch.ones_like(centre[:, :1]), position - cell, sides / size], dim=1)
    targets[rows, :, cell[:, 1], cell[:, 0]] = values
    return targets


def _active(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.LeakyReLU(SLOPE)]
