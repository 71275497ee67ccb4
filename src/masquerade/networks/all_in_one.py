"""The flow of iFADIT's published code, other than Eq. 5-8: all-in-one blocks (FrEIA) conditioned on the secret."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from masquerade.core.errors import ParameterError
from masquerade.networks.coupling import HIDDEN, subnetwork

VERSION = "0.2"
"""The release of FrEIA with this block: a matrix permutes, and the scale is exp(limit tanh(s / 10))."""


class AllInOneFlow(nn.Module):
    """(N, width) and secret vectors (N, secret) -> (N, width); ``inverse`` is its exact inverse.

    A block has one sub-network, which computes s and t from the first half of a vector and the secret. The second half
    is multiplied by exp(``limit`` tanh(s / 10)) and shifted by t / 10. A learned scale and shift of every number and a
    fixed permutation, drawn from torch's generator, follow. Vectors are scaled as in `SecureFlow`.

    This is the block of FrEIA VERSION. Raises ParameterError if the installed FrEIA has another one.
    """

    def __init__(
        self,
        width: int,
        secret: int,
        blocks: int = 4,
        hidden: Sequence[int] = HIDDEN,
        limit: float = 2.0,
        start: float = 1.0,
    ):
        super().__init__()
        from FrEIA.modules import AllInOneBlock

        def made(inputs: int, outputs: int) -> nn.Sequential:
            return subnetwork(inputs, outputs, hidden, start)

        self.gain = math.sqrt(width)
        self.blocks = nn.ModuleList(
            AllInOneBlock([(width,)], [(secret,)], made, affine_clamping=limit) for _ in range(blocks)
        )
        block: Any
        for block in self.blocks:  # FrEIA draws its permutations from NumPy's global generator
            if block.w_perm.ndim != 2:
                raise ParameterError(
                    f"flow.kind: all_in_one is the block of FrEIA {VERSION}. The installed FrEIA keeps its permutation "
                    "as indices and limits the scale by another formula, as its development version does, so the same "
                    f"weights are another flow. Install FrEIA=={VERSION} (requirements.lock), or choose coupling."
                )
            permuted = torch.eye(width)[torch.randperm(width)]
            block.w_perm.copy_(permuted)
            block.w_perm_inv.copy_(permuted.T)

    def forward(self, vectors: Tensor, secret: Tensor) -> Tensor:
        numbers = vectors * self.gain
        for block in self.blocks:
            (numbers,), _ = block([numbers], [secret])
        return numbers / self.gain

    def inverse(self, vectors: Tensor, secret: Tensor) -> Tensor:
        numbers = vectors * self.gain
        for block in reversed(self.blocks):
            (numbers,), _ = block([numbers], [secret], rev=True)
        return numbers / self.gain
