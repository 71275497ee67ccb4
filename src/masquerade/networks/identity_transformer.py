"""The networks of FIT (Gu et al. 2020, arXiv:1911.11759): the face identity transformer, and who guesses its password.

The transformer is the residual generator of Johnson et al. 2016 (arXiv:1603.08155) and CycleGAN (Zhu et al. 2017,
appendix 7.2), to which the password comes as constant channels beside the picture. The paper normalises over the
batch; here a face is normalised by itself, in groups of channels (Wu and He 2018), so that a result does not depend on
who else is in the batch. Groups of one channel (instance norm) would not do: a password shifts each channel of the
first layer by a constant, which is exactly what they take away.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUP = 16  # channels that are normalised together: Wu and He 2018, Table 3
SLOPE = 0.2  # of the classifier's LeakyReLU: PatchGAN (Isola et al. 2017)


class IdentityTransformer(nn.Module):
    """T(I, p): a picture (N, 3, S, S) in [-1, 1] and a password (N, bits) of +-0.5 -> a picture, the same shape and range.

    S is a multiple of ``2 ** halvings``. ``width``: channels before the first halving, doubled by each. Where
    ``residual``, the network draws the change and not the picture (docs/fit.md).
    """

    def __init__(self, bits: int, width: int, halvings: int, blocks: int, residual: bool):
        super().__init__()
        self.bits, self.residual = bits, residual
        self.first = nn.Conv2d(3 + bits, width, 7, bias=False)
        widths = [width * 2**level for level in range(halvings + 1)]
        layers: list[nn.Module] = [_norm(width), nn.ReLU()]
        for into, out in pairwise(widths):
            layers += [_convolution(into, out, stride=2), _norm(out), nn.ReLU()]
        layers += [Block(widths[-1]) for _ in range(blocks)]
        for into, out in pairwise(widths[::-1]):
            # enlarging and a convolution, as published, leave no chequerboard as transposed convolutions do
            layers += [nn.Upsample(scale_factor=2), _convolution(into, out), _norm(out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.last = nn.Conv2d(width, 3, 7, padding=3, padding_mode="reflect")

    def forward(self, images: Tensor, passwords: Tensor) -> Tensor:
        return self.draw(images, passwords).clamp(-1, 1)

    def draw(self, images: Tensor, passwords: Tensor) -> Tensor:
        """As ``forward``; where ``residual``, not yet cut to [-1, 1]."""
        drawn = self.last(self.layers(self._enter(images, passwords))).tanh()
        return images + 2 * drawn if self.residual else drawn  # 2: from any colour to any other

    def _enter(self, images: Tensor, passwords: Tensor) -> Tensor:
        """The first convolution on the picture with the password's bits as constant channels.

        A convolution of a constant is a constant, its sum of weights: 49 times less work, and the same numbers.
        """
        of_image, of_password = self.first.weight.split([3, self.bits], dim=1)
        features = functional.conv2d(functional.pad(images, (3, 3, 3, 3), mode="reflect"), of_image)
        return features + (passwords @ of_password.sum(dim=(2, 3)).T)[:, :, None, None]


class Block(nn.Module):
    """x + f(x), f two convolutions with their norms (He et al. 2016, as in Johnson et al. 2016)."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            _convolution(width, width), _norm(width), nn.ReLU(), _convolution(width, width), _norm(width)
        )

    def forward(self, features: Tensor) -> Tensor:
        return features + self.layers(features)


class PasswordClassifier(nn.Module):
    """Q: which password turned one picture into the other (Gu et al. 2020, after InfoGAN, Chen et al. 2016).

    Two pictures (N, 3, S, S) -> logits (N, bits / group, 2 ** group): of each group of bits, which number it is.
    ``depth`` convolutions that halve, of ``width`` channels at first, then the mean over the picture.
    """

    def __init__(self, bits: int, group: int, width: int, depth: int):
        super().__init__()
        self.shape = (bits // group, 2**group)
        widths = [6, *(width * 2**level for level in range(depth))]
        layers: list[nn.Module] = []
        for into, out in pairwise(widths):
            layers += [nn.Conv2d(into, out, 4, 2, 1, bias=False), _norm(out), nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers)
        self.score = nn.Linear(widths[-1], self.shape[0] * self.shape[1])

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        features = self.layers(torch.cat([before, after], dim=1)).mean(dim=(2, 3))
        return self.score(features).unflatten(1, self.shape)


def _convolution(into: int, out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(into, out, 3, stride, 1, bias=False, padding_mode="reflect")


def _norm(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(max(1, width // GROUP), width)
