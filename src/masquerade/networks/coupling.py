"""Affine coupling blocks with a secret (Yuan et al. 2024, iFADIT, section 3.3.2, after RealNVP, Dinh et al. 2017).

A block changes one half of a vector at a time, by a scale and a shift that depend on the other half and the secret. So
with the same secret the change can be undone exactly, whatever the networks inside compute.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

HIDDEN = (256, 128, 128, 256)
"""Hidden widths of a sub-network, as in the published code."""
SLOPE = 0.01  # of its leaky rectifiers


def subnetwork(inputs: int, outputs: int, hidden: Sequence[int] = HIDDEN, start: float = 1.0) -> nn.Sequential:
    """omega, phi, rho or eta: (N, half + secret) -> (N, half). Every layer is initialized to keep the variance.

    The last layer is multiplied by ``start``, so that a block starts near a plain scaling.
    """
    widths = [inputs, *hidden, outputs]
    linear = [nn.Linear(before, after) for before, after in pairwise(widths)]
    for layer in linear:
        nn.init.kaiming_normal_(layer.weight, a=SLOPE)
        nn.init.zeros_(layer.bias)
    with torch.no_grad():
        linear[-1].weight.mul_(start)
    rectified = [part for layer in linear[:-1] for part in (layer, nn.LeakyReLU(SLOPE))]
    return nn.Sequential(*rectified, linear[-1])


class SecureCouplingBlock(nn.Module):
    """One SACB: the halves (N, half) of a vector and the secret vector (N, secret) -> both halves, changed.

    ``limit``: the constant of a(x) = limit * sigmoid(x), so that every scale is in (1, e^limit). ``reach`` (2, half):
    factors of the shifts eta and phi of the first and the second half; ones: as in Eq. 5 and 6.
    """

    reach: Tensor

    def __init__(self, half: int, secret: int, hidden: Sequence[int] = HIDDEN, limit: float = 1.0, start: float = 1.0):
        super().__init__()
        self.limit = limit
        # omega and phi change the second half, rho and eta the first
        self.omega, self.phi, self.rho, self.eta = (subnetwork(half + secret, half, hidden, start) for _ in range(4))
        self.register_buffer("reach", torch.ones(2, half))

    def forward(self, first: Tensor, second: Tensor, secret: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 5 and 6."""
        known = torch.cat([first, secret], dim=1)
        second = second * torch.exp(self._bounded(self.omega(known))) + self.reach[1] * self.phi(known)  # Eq. 5
        known = torch.cat([second, secret], dim=1)
        first = first * torch.exp(self._bounded(self.rho(known))) + self.reach[0] * self.eta(known)  # Eq. 6
        return first, second

    def inverse(self, first: Tensor, second: Tensor, secret: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 7 and 8: the inverse of `forward` with the same secret."""
        known = torch.cat([second, secret], dim=1)
        first = (first - self.reach[0] * self.eta(known)) * torch.exp(-self._bounded(self.rho(known)))  # Eq. 7
        known = torch.cat([first, secret], dim=1)
        second = (second - self.reach[1] * self.phi(known)) * torch.exp(-self._bounded(self.omega(known)))  # Eq. 8
        return first, second

    def _bounded(self, x: Tensor) -> Tensor:
        """a of Eq. 5-8."""
        return self.limit * torch.sigmoid(x)


class SecureFlow(nn.Module):
    """T of Eq. 3: (N, width) and secret vectors (N, secret) -> (N, width); ``inverse`` is its exact inverse.

    ``width`` is even. Inside, vectors are scaled by sqrt(width), so that the coordinates of a unit vector are about 1,
    like those of the secret.
    """

    def __init__(
        self,
        width: int,
        secret: int,
        blocks: int = 4,
        hidden: Sequence[int] = HIDDEN,
        limit: float = 1.0,
        start: float = 1.0,
    ):
        super().__init__()
        if width % 2:
            raise ValueError(f"the width is {width}; it must be even")
        self.gain = math.sqrt(width)
        self.blocks = nn.ModuleList(
            SecureCouplingBlock(width // 2, secret, hidden, limit, start) for _ in range(blocks)
        )

    def set_reach(self, reach: Tensor) -> None:
        """Set the relative factors of the shifts to ``reach`` (width,), with a mean square of 1."""
        reach = reach / reach.square().mean().sqrt()
        for block in self.blocks:
            assert isinstance(block, SecureCouplingBlock)
            block.reach.copy_(reach.view(2, -1))

    def forward(self, vectors: Tensor, secret: Tensor) -> Tensor:
        first, second = (vectors * self.gain).chunk(2, dim=1)
        for block in self.blocks:
            first, second = block(first, second, secret)
        return torch.cat([first, second], dim=1) / self.gain

    def inverse(self, vectors: Tensor, secret: Tensor) -> Tensor:
        first, second = (vectors * self.gain).chunk(2, dim=1)
        for block in reversed(self.blocks):
            assert isinstance(block, SecureCouplingBlock)
            first, second = block.inverse(first, second, secret)
        return torch.cat([first, second], dim=1) / self.gain
