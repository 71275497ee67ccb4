"""The networks of StarGAN (Choi et al. 2018, arXiv:1711.09020), layer by layer as in the published code (model.py).

The published generator takes the label as constant channels of the picture. Instance norm removes a constant from each
channel, so only the borders, which are padded with zeros, carry the label. With ``scaled`` the label scales and shifts
the channels after the norms of the residual blocks instead (ours).
"""

import torch
from torch import Tensor, nn

SLOPE = 0.01  # of the critic's LeakyReLU
INSIDE = 1 - 1 / 512  # keeps artanh finite for black and white
MOST = 2048  # largest number of channels of the critic


class LabeledBlock(nn.Module):
    """x + f(x): convolution, norm, ReLU, convolution, norm; the label scales and shifts what the norms give."""

    def __init__(self, width: int, labels: int):
        super().__init__()
        self.first, self.norm1 = _convolution(width, width, 3), _norm(width)
        self.second, self.norm2 = _convolution(width, width, 3), _norm(width)
        self.label = nn.Linear(labels, 4 * width) if labels else None

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        made = [None] * 4 if self.label is None else self.label(labels)[:, :, None, None].chunk(4, dim=1)
        deep = _modulate(self.norm1(self.first(x)), made[0], made[1]).relu()
        return x + _modulate(self.norm2(self.second(deep)), made[2], made[3])


class StarGanGenerator(nn.Module):
    """A picture (N, 3, S, S) in [-1, 1] and a label (N, L) of 0 and 1 -> the picture with that label, same range.

    ``width``: channels before the first halving (64); ``halvings`` (2); ``blocks`` (6). ``reach`` 0: the network draws
    the picture, as published; else the largest change of the artanh of a color. ``scaled``: see above.
    """

    def __init__(self, labels: int, width: int = 64, halvings: int = 2, blocks: int = 6, reach: float = 0.0,
                 scaled: bool = False):  # fmt: skip
        super().__init__()
        self.reach, self.scaled = reach, scaled
        layers: list[nn.Module] = [_convolution(3 + (0 if scaled else labels), width, 7), _norm(width), nn.ReLU()]
        for level in range(halvings):
            wide = width * 2**level
            layers += [nn.Conv2d(wide, 2 * wide, 4, 2, 1, bias=False), _norm(2 * wide), nn.ReLU()]
        self.down = nn.Sequential(*layers)
        deep = width * 2**halvings
        self.middle = nn.ModuleList(LabeledBlock(deep, labels if scaled else 0) for _ in range(blocks))
        layers = []
        for level in reversed(range(halvings)):
            wide = width * 2**level
            layers += [nn.ConvTranspose2d(2 * wide, wide, 4, 2, 1, bias=False), _norm(wide), nn.ReLU()]
        last = _convolution(width, 3, 7)
        if reach:
            nn.init.zeros_(last.weight)  # the training starts at the picture itself
        self.up = nn.Sequential(*layers, last)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        features = images
        if not self.scaled:
            features = torch.cat([images, labels[:, :, None, None].expand(-1, -1, *images.shape[2:])], dim=1)
        features = self.down(features)
        for block in self.middle:
            features = block(features, labels)
        drawn = self.up(features).tanh()
        return drawn if not self.reach else ((INSIDE * images).atanh() + self.reach * drawn).tanh()


class StarGanCritic(nn.Module):
    """Pictures (N, 3, S, S) -> a map of scores (N, 1, h, w), larger is more real, and logits of the label (N, L).

    ``width``: channels after the first halving (64), which each of the ``depth`` (6) halvings doubles.
    """

    def __init__(self, size: int, labels: int, width: int = 64, depth: int = 6):
        super().__init__()
        layers: list[nn.Module] = []
        into = 3
        for level in range(depth):
            out = min(width * 2**level, MOST)
            layers += [nn.Conv2d(into, out, 4, 2, 1), nn.LeakyReLU(SLOPE)]
            into = out
        self.layers = nn.Sequential(*layers)
        self.score = nn.Conv2d(into, 1, 3, padding=1, bias=False)
        self.label = nn.Conv2d(into, labels, size // 2**depth, bias=False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.layers(images)
        return self.score(features), self.label(features).flatten(1)


def _modulate(x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    return x if scale is None or shift is None else x * (1 + scale) + shift


def _convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)


def _norm(width: int) -> nn.InstanceNorm2d:
    return nn.InstanceNorm2d(width, affine=True)
