"""The conditional disentanglement-fusion network of LReOrg (paper, section 3.2, Eq. 1-4).

One stack of blocks read in two directions: forwards it takes a latent code apart into a key feature (what the keyword
names) and a residual feature (all else), backwards it fuses two such features into a code. Whatever the linear and the
dense blocks compute, the one direction undoes the other exactly.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

SLOPE = 0.2  # of the leaky rectifiers: the dense blocks' of Wang et al. 2018 (ESRGAN)
START = 0.1  # of what keeps the variance: how large the last layer of a block is at first
DENSE_LAYERS = 5  # of a dense block: Wang et al. 2018, as HiNet has them


class LinearBlock(nn.Module):
    """phi(a, b) = FC(concat(FC(a), FC(b))): (..., width) and a condition (..., condition) -> (..., width)."""

    def __init__(self, width: int, condition: int, hidden: int):
        super().__init__()
        self.of_feature, self.of_condition = nn.Linear(width, hidden), nn.Linear(condition, hidden)
        self.out = nn.Linear(2 * hidden, width)
        _start_small(self.out)

    def forward(self, feature: Tensor, condition: Tensor) -> Tensor:
        both = torch.cat([self.of_feature(feature), self.of_condition(condition)], dim=-1)
        return self.out(functional.leaky_relu(both, SLOPE))


class DenseBlock(nn.Module):
    """psi: (..., width) -> (..., width); each layer sees the input and all layers before it."""

    def __init__(self, width: int, growth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width + number * growth, growth) for number in range(DENSE_LAYERS - 1))
        self.out = nn.Linear(width + (DENSE_LAYERS - 1) * growth, width)
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, a=SLOPE)
            nn.init.zeros_(layer.bias)
        _start_small(self.out)

    def forward(self, feature: Tensor) -> Tensor:
        seen = feature
        for layer in self.layers:
            seen = torch.cat([seen, functional.leaky_relu(layer(seen), SLOPE)], dim=-1)
        return self.out(seen)


class DisentanglementBlock(nn.Module):
    """One CDB: the pair (..., width) twice and a condition -> the pair; ``inverse``: the CFB, of the same weights."""

    def __init__(self, width: int, condition: int, hidden: int, growth: int, limit: float):
        super().__init__()
        self.limit = limit
        self.phi_1, self.phi_2, self.phi_3 = (LinearBlock(width, condition, hidden) for _ in range(3))
        self.psi_1, self.psi_2, self.psi_3 = (DenseBlock(width, growth) for _ in range(3))

    def forward(self, first: Tensor, second: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        first = first + self.phi_1(second, condition)  # Eq. 1, forward condition block
        second = second * torch.exp(self._bounded(self.phi_2(first, condition))) + self.phi_3(first, condition)
        first = first + self.psi_1(second)  # Eq. 2, disentangle block
        second = second * torch.exp(self._bounded(self.psi_2(first))) + self.psi_3(first)
        return first, second

    def inverse(self, first: Tensor, second: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        second = (second - self.psi_3(first)) * torch.exp(-self._bounded(self.psi_2(first)))  # Eq. 3, fusion block
        first = first - self.psi_1(second)
        # Eq. 4, backward condition block: phi_2 and phi_3 see what they saw in Eq. 1 (docs/lreorg.md)
        second = (second - self.phi_3(first, condition)) * torch.exp(-self._bounded(self.phi_2(first, condition)))
        first = first - self.phi_1(second, condition)
        return first, second

    def _bounded(self, x: Tensor) -> Tensor:
        """sigma of Eq. 1-4: -limit .. limit, 0 at 0 (HiNet, Jing et al. 2021)."""
        return self.limit * (2 * torch.sigmoid(x) - 1)


class CDFNet(nn.Module):
    """Codes (N, ..., width) under conditions (N, condition) <-> key and residual features, of the codes' shape.

    A code of several style layers is taken apart layer by layer. Codes are centred by ``mean`` and divided by
    ``deviation``, those of the latent space, on the way in, and brought back on the way out.
    """

    def __init__(self, width: int, condition: int, blocks: int, hidden: int, growth: int, limit: float = 2.0):
        super().__init__()
        self.blocks = nn.ModuleList(
            DisentanglementBlock(width, condition, hidden, growth, limit) for _ in range(blocks)
        )
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(()))

    def disentangle(self, codes: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """The key feature f and the residual feature r of codes: the forward process, from the pair (0, s)."""
        second = (codes - self.mean) / self.deviation
        first, condition = torch.zeros_like(second), _spread(condition, codes.shape)
        for block in self.blocks:
            first, second = block(first, second, condition)
        return first, second

    def fuse(self, key: Tensor, residual: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """The backward process: (delta r, s). delta r, the information loss, is 0 where both are of one code."""
        first, second, condition = key, residual, _spread(condition, key.shape)
        for block in reversed(self.blocks):
            first, second = block.inverse(first, second, condition)
        return first, second * self.deviation + self.mean


def _spread(condition: Tensor, shape: Sequence[int]) -> Tensor:
    """(N, condition) for every style layer of codes of ``shape``."""
    between = len(shape) - 2
    return condition.view(len(condition), *[1] * between, -1).expand(*shape[:-1], -1)


def _start_small(layer: nn.Linear) -> None:
    """A block changes little at first.

    Not nothing, as HiNet's: the first of the pair is 0 here, and with zeros everywhere no gradient reaches any weight.
    """
    nn.init.kaiming_normal_(layer.weight, a=SLOPE)
    nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layer.weight.mul_(START)
