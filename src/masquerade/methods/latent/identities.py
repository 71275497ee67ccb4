"""Codes whose images have an identity that was asked for: an optimization of codes that a mapping has found (ours)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from masquerade.networks.w_space import PNSpace

LEARNING_RATE, BETAS, LAST = 0.03, (0.9, 0.99), 0.2
"""Of Adam: the first rate, the decays, and the last rate as a share of the first."""
PRIOR = 0.05
"""The weight of the distance from the mapped code."""


def approach_identity(
    codes: Tensor, target: Tensor, generator: Any, space: PNSpace, recognize: Callable[[Tensor], Tensor], steps: int
) -> Tensor:
    """Codes (N, layers, style) after ``steps`` steps of Adam, on the device of ``codes``.

    ``target``: unit identity vectors (N, D). ``recognize``: those of the images (N, 3, S, S) that the generator draws.
    The loss of a face is 1 - cos of both (L_id, Eq. 15 of IdentityDP), and the mean squared distance
    from the given code in the ``space`` of the generator, times `PRIOR`. Each face has its own state, so a face does
    not depend on its batch.
    """
    with torch.enable_grad():
        start = space(codes)
        free = codes.detach().clone().requires_grad_(True)
        optimizer = torch.optim.Adam([free], betas=BETAS)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * (1 - (1 - LAST) * step / steps)
            similarity = (recognize(generator.synthesize(free)) * target).sum(dim=1)
            loss = 1 - similarity + PRIOR * (space(free) - start).square().mean(dim=(1, 2))
            (free.grad,) = torch.autograd.grad(loss.sum(), free)
            optimizer.step()
    return free.detach()
