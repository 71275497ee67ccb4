"""The networks of FIT (Gu et al. 2020, arXiv:1911.11759): transformer, password classifier and discriminators.

The transformer is the residual generator of Johnson et al. 2016 (arXiv:1603.08155) and CycleGAN (Zhu et al. 2017,
appendix 7.2), with the password as additional constant channels of the picture. The paper normalizes over the batch.
Here each face is normalized separately, in groups of channels (Wu and He 2018), so that a result does not depend on the
other faces of the batch. Groups of one channel (instance norm) would remove the password: it shifts each channel of the
first layer by a constant.
"""

from collections.abc import Iterable
from itertools import pairwise

import torch
from torch import Tensor, nn

from masquerade.networks.deterministic import ReflectedConv2d
from masquerade.networks.patchgan import MultiScale

GROUP = 16  # channels that are normalized together: Wu and He 2018, Table 3
INSIDE = 1 - 1 / 512  # keeps artanh finite for black and white; changes a value by less than half a step of 8 bits
SLOPE = 0.2  # of the classifier's LeakyReLU: PatchGAN (Isola et al. 2017)


class IdentityTransformer(nn.Module):
    """T(I, p): a picture (N, 3, S, S) in [-1, 1] and a password (N, bits) of +-0.5 -> a picture, same shape and range.

    S is a multiple of ``2 ** halvings``. ``width``: channels before the first halving; each halving doubles them.
    ``reach`` 0: the network draws the picture, T = tanh f(I, p), as published. Otherwise it draws a change that is odd
    in the password, T = tanh(artanh I + reach / 2 (tanh f(I, p) - tanh f(I, -p))). The inverse password undoes the
    change as far as f is the same for both pictures, and no color is clipped (docs/fit.md).
    """

    def __init__(self, bits: int, width: int, halvings: int, blocks: int, reach: float):
        super().__init__()
        self.reach = reach
        self.first = ReflectedConv2d(3, width, 7, bias=False)
        # The bits as constant channels of that convolution, which maps a constant to a constant: the sum of its kernel.
        self.password = nn.Linear(bits, width, bias=False)
        # With a smaller start than the picture's, the network learns to ignore the password.
        nn.init.normal_(self.password.weight, std=2 / bits**0.5)
        widths = [width * 2**level for level in range(halvings + 1)]
        layers: list[nn.Module] = [_norm(width), nn.ReLU()]
        for into, out in pairwise(widths):
            layers += [_convolution(into, out, stride=2), _norm(out), nn.ReLU()]
        layers += [Block(widths[-1]) for _ in range(blocks)]
        for into, out in pairwise(widths[::-1]):
            # as published: unlike transposed convolutions, these leave no chequerboard
            layers += [nn.Upsample(scale_factor=2), _convolution(into, out), _norm(out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.last = ReflectedConv2d(width, 3, 7)

    def forward(self, images: Tensor, passwords: Tensor) -> Tensor:
        # channels last here and in all that follows: twice as fast on a CPU
        of_image = self.first(images.contiguous(memory_format=torch.channels_last))
        of_password = self.password(passwords)[:, :, None, None]
        if not self.reach:
            return self._f(of_image + of_password).tanh()
        both = torch.cat([of_image + of_password, of_image - of_password])
        drawn, drawn_inverse = self._f(both).tanh().chunk(2)  # with p and with -p
        return ((INSIDE * images).atanh() + self.reach / 2 * (drawn - drawn_inverse)).tanh()

    def _f(self, features: Tensor) -> Tensor:
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
    """Q: the password that turned one picture into the other (Gu et al. 2020, after InfoGAN, Chen et al. 2016).

    Two pictures (N, 3, S, S) -> logits (N, bits / group, 2 ** group) of the number in each group of bits. ``depth``
    convolutions halve the picture, the first with ``width`` channels, each further one twice as many, up to 8 times
    ``width``; then the mean over the picture is taken. ``last_stride`` 4: the last convolution takes blocks of 4 x 4
    without padding. ``first_norm``: whether the first convolution is normalized; if not, it has biases.
    """

    def __init__(self, bits: int, group: int, width: int, depth: int, last_stride: int = 2, first_norm: bool = True):
        super().__init__()
        self.shape = (bits // group, 2**group)
        widths = [6, *(width * min(2**level, 8) for level in range(depth))]
        layers: list[nn.Module] = []
        for level, (into, out) in enumerate(pairwise(widths), start=1):
            stride, padding = (4, 0) if level == depth and last_stride == 4 else (2, 1)
            normalized = level > 1 or first_norm
            layers += [nn.Conv2d(into, out, 4, stride, padding, bias=not normalized)]
            layers += [_norm(out)] * normalized + [nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers)
        self.score = nn.Linear(widths[-1], self.shape[0] * self.shape[1])

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        features = self.layers(torch.cat([before, after], dim=1)).mean(dim=(2, 3))
        return self.score(features).unflatten(1, self.shape)


class Discriminators(MultiScale):
    """PatchGAN (Isola et al. 2017), with other weights for pictures halved 0, 1, ..., ``scales`` - 1 times.

    Input (N, 3, S, S) in [-1, 1]. Output: ``scales`` maps of scores, finest first; 1 means real, 0 drawn. ``depth``
    convolutions precede the one that gives the score. The first has ``width`` channels, each further one twice as many,
    up to 8 times ``width``; all but the last halve the picture. The instance norm of `patchgan` would hide the colors.
    ``coarser``: the networks of all scales but the finest, if other discriminators have them, too.
    """

    def __init__(self, width: int, depth: int, scales: int, coarser: Iterable[nn.Module] | None = None):
        widths = [width * min(2**level, 8) for level in range(depth)]
        super().__init__(
            [_patch(widths), *(coarser if coarser is not None else (_patch(widths) for _ in range(scales - 1)))]
        )


def build_discriminators(kinds: Iterable[str], width: int, depth: int, scales: int, shared: bool) -> nn.ModuleDict:
    """A discriminator for each kind of picture. ``shared``: only the finest scale of each is its own (Gu et al. 2020's
    published code); all coarser scales are one network for all kinds.
    """
    made: dict[str, Discriminators] = {}
    for kind in kinds:
        coarser = next(iter(made.values())).scales[1:] if shared and made else None
        made[kind] = Discriminators(width, depth, scales, coarser)
    return nn.ModuleDict(made)


def _patch(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 2, 1), nn.LeakyReLU(SLOPE)]
    for level, (into, out) in enumerate(pairwise(widths), start=2):
        stride = 1 if level == len(widths) else 2
        layers += [nn.Conv2d(into, out, 4, stride, 1, bias=False), _norm(out), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, nn.Conv2d(widths[-1], 1, 4, 1, 1))


def _convolution(into: int, out: int, stride: int = 1) -> nn.Conv2d:
    return ReflectedConv2d(into, out, 3, stride, bias=False)


def _norm(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(max(1, width // GROUP), width)
