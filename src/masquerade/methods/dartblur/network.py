"""The network of DartBlur (Jiang et al. 2023): the U-Net of the published code (nets/UNet.py), and its weight file."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from masquerade.methods.dartblur import HALVINGS, DartBlurSettings
from masquerade.training import weight_files

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


def _active(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.LeakyReLU(SLOPE)]


def load_official(params: DartBlurSettings, path: Path) -> DartBlurUNet:
    """The U-Net of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    given = weight_files.select_tensors(weight_files.read(path), path)
    return weight_files.load(
        DartBlurUNet(params.widths), weight_files.rename_tensors(given, official_names(), path), path
    )


def official_names() -> dict[str, str]:
    """Published name -> our name of each tensor."""
    layers = {f"down{level}.module.{at}": f"down.{level}.{at}" for level in range(HALVINGS) for at in (0, 2)}
    layers |= {f"up{level}.module.{at}": f"up{level}.{at}" for level in range(HALVINGS) for at in (0, 3)}
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in layers.items() for kind in ("weight", "bias")}
