"""The conditional disentanglement-fusion network of LReOrg (paper, section 3.2, Eq. 1-4).

One stack of blocks works in two directions. Forwards it disentangles a latent code into a key feature, which the
keyword names, and a residual feature. Backwards it fuses two such features into a code. Each direction is the exact
inverse of the other, whatever the linear and the dense blocks compute.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

SLOPE = 0.2  # of the leaky rectifiers, as in the dense blocks of Wang et al. 2018 (ESRGAN)
START = 0.1  # initial size of a block's last layer, relative to the size that keeps the variance
DENSE_LAYERS = 5  # of a dense block: Wang et al. 2018 and HiNet


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
    """psi: (..., width) -> (..., width); the input of each layer is that of the block and all earlier outputs."""

    def __init__(self, width: int, growth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width + number * growth, growth) for number in range(DENSE_LAYERS - 1))
        self.out = nn.Linear(width + (DENSE_LAYERS - 1) * growth, width)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, a=SLOPE)
            nn.init.zeros_(layer.bias)
        _start_small(self.out)

    def forward(self, feature: Tensor) -> Tensor:
        for layer in self.layers:
            feature = torch.cat([feature, functional.leaky_relu(layer(feature), SLOPE)], dim=-1)
        return self.out(feature)


class DisentanglementBlock(nn.Module):
    """One CDB: a pair of (..., width) and a condition -> a pair. ``inverse`` is the CFB, with the same weights."""

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
        # Eq. 4, backward condition block: phi_2 and phi_3 have the inputs of Eq. 1 (docs/lreorg.md)
        second = (second - self.phi_3(first, condition)) * torch.exp(-self._bounded(self.phi_2(first, condition)))
        first = first - self.phi_1(second, condition)
        return first, second

    def _bounded(self, x: Tensor) -> Tensor:
        """sigma of Eq. 1-4: between -limit and limit, 0 at 0 (HiNet, Jing et al. 2021)."""
        return self.limit * (2 * torch.sigmoid(x) - 1)


class CDFNet(nn.Module):
    """Codes (N, ..., width) with conditions (N, condition) <-> key and residual features of the same shape.

    A code of several style layers is disentangled layer by layer. Codes are standardized by ``mean`` and ``deviation``
    of the latent space on the way in, and the reverse on the way out.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, width: int, condition: int, blocks: int, hidden: int, growth: int, limit: float = 2.0):
        super().__init__()
        self.blocks = nn.ModuleList(
            DisentanglementBlock(width, condition, hidden, growth, limit) for _ in range(blocks)
        )
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(()))

    def disentangle(self, codes: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """The key feature f and the residual feature r of codes s: the forward process, from the pair (0, s)."""
        second = (codes - self.mean) / self.deviation
        first, condition = torch.zeros_like(second), _spread(condition, codes.shape)
        for block in self.blocks:
            first, second = block(first, second, condition)
        return first, second

    def fuse(self, key: Tensor, residual: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """(delta r, s) by the backward process. The information loss delta r is 0 if both features are of one code."""
        first, second, condition = key, residual, _spread(condition, key.shape)
        for block in reversed(self.blocks):
            assert isinstance(block, DisentanglementBlock)
            first, second = block.inverse(first, second, condition)
        return first, second * self.deviation + self.mean


def _spread(condition: Tensor, shape: Sequence[int]) -> Tensor:
    """(N, condition) for every style layer of codes of ``shape``."""
    between = len(shape) - 2
    return condition.view(len(condition), *[1] * between, -1).expand(*shape[:-1], -1)


def _start_small(layer: nn.Linear) -> None:
    """Initialize the last layer of a block so that the block changes little at first.

    HiNet starts with no change at all. Here that would stop every gradient, because the first of the pair is 0.
    """
    nn.init.kaiming_normal_(layer.weight, a=SLOPE)
    nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layer.weight.mul_(START)
