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
INSIDE = 1 - 1 / 512  # artanh of black and white is finite; less than half a step of 8 bits
SLOPE = 0.2  # of the classifier's LeakyReLU: PatchGAN (Isola et al. 2017)


class IdentityTransformer(nn.Module):
    """T(I, p): a picture (N, 3, S, S) in [-1, 1] and a password (N, bits) of +-0.5 -> a picture, same shape and range.

    S is a multiple of ``2 ** halvings``. ``width``: channels before the first halving, doubled by each. ``reach`` 0:
    the network draws the picture, T = tanh f(I, p), as published. Otherwise it draws a change that is odd in the
    password, T = tanh(artanh I + reach / 2 (tanh f(I, p) - tanh f(I, -p))): the inverse password takes it back as far
    as f sees the same in both pictures, and no colour is cut off (docs/fit.md).
    """

    def __init__(self, bits: int, width: int, halvings: int, blocks: int, reach: float):
        super().__init__()
        self.reach = reach
        self.first = nn.Conv2d(3, width, 7, padding=3, padding_mode="reflect", bias=False)
        # The bits as constant channels of that convolution: of a constant it gives a constant, the sum of its kernel.
        self.password = nn.Linear(bits, width, bias=False)
        # A password weighs as much as a picture from the start, or it is learnt to be ignored.
        nn.init.normal_(self.password.weight, std=2 / bits**0.5)
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
        # channels last, and so all that follows: twice as fast on a CPU
        of_image = self.first(images.contiguous(memory_format=torch.channels_last))
        of_password = self.password(passwords)[:, :, None, None]
        if not self.reach:
            return self._leave(of_image + of_password).tanh()
        both = torch.cat([of_image + of_password, of_image - of_password])
        there, back = self._leave(both).tanh().chunk(2)
        return ((INSIDE * images).atanh() + self.reach / 2 * (there - back)).tanh()

    def _leave(self, features: Tensor) -> Tensor:
        return self.last(self.layers(features))


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


class Discriminators(nn.Module):
    """PatchGAN (Isola et al. 2017) with weights of its own on pictures halved 0, 1, ..., ``scales`` - 1 times.

    Input (N, 3, S, S) in [-1, 1]. Output: ``scales`` maps of scores, finest first; 1 means real, 0 drawn. ``depth``
    convolutions before the one that scores, of ``width`` channels at first, doubled by each up to 8 times; all but
    the last halve. Unlike `patchgan`'s, which have an instance norm, they see whether a colour is a face's.
    """

    def __init__(self, width: int, depth: int, scales: int):
        super().__init__()
        widths = [width * min(2**level, 8) for level in range(depth)]
        self.scales = nn.ModuleList(_patch(widths) for _ in range(scales))

    def forward(self, images: Tensor) -> list[Tensor]:
        scores = []
        for level, discriminator in enumerate(self.scales):
            if level:
                images = functional.avg_pool2d(images, 3, 2, 1, count_include_pad=False)
            scores.append(discriminator(images))
        return scores


def _patch(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 2, 1), nn.LeakyReLU(SLOPE)]
    for level, (into, out) in enumerate(pairwise(widths), start=2):
        stride = 1 if level == len(widths) else 2
        layers += [nn.Conv2d(into, out, 4, stride, 1, bias=False), _norm(out), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, nn.Conv2d(widths[-1], 1, 4, 1, 1))


def _convolution(into: int, out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(into, out, 3, stride, 1, bias=False, padding_mode="reflect")


def _norm(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(max(1, width // GROUP), width)
