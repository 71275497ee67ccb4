"""Codes whose images have an identity that was asked for: an optimization of codes that a mapping has found (ours)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from masquerade.networks import deterministic
from masquerade.networks.w_space import PNSpace

LEARNING_RATE, BETAS, LAST = 0.05, (0.9, 0.99), 0.2
"""Of Adam: the first rate, the decays, and the last rate as a share of the first."""
PRIOR, COLORS = 0.02, 5.0
"""The weights of the distance from the mapped code, and of the difference of colors."""
TILES = (8, 8)
"""The colors of an image are its means over this many tiles."""


def approach_identity(
    codes: Tensor,
    target: Tensor,
    looks: Tensor,
    generator: Any,
    space: PNSpace,
    recognize: Callable[[Tensor], Tensor],
    steps: int,
) -> Tensor:
    """Codes (N, layers, style) after ``steps`` steps of Adam, on the device of ``codes``.

    ``target``: unit identity vectors (N, D). ``looks``: images (N, 3, S, S) in [-1, 1] whose colors the result should
    have, because a recognizer does not see the color of a skin. ``recognize``: the identity vectors of images that the
    generator draws. The loss of a face is 1 - cos of both vectors (L_id, Eq. 15 of IdentityDP), the mean squared
    distance from the given code in the ``space`` of the generator, times `PRIOR`, and the mean squared difference of
    the means over `TILES`, times `COLORS`. Each face has its own state, so a face does not depend on its batch.
    """
    with torch.enable_grad():
        start, colors = space(codes), deterministic.average(looks, TILES)
        free = codes.detach().clone().requires_grad_(True)
        optimizer = torch.optim.Adam([free], betas=BETAS)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * (1 - (1 - LAST) * step / steps)
            drawn = generator.synthesize(free)
            similarity = (recognize(drawn) * target).sum(dim=1)
            moved = (space(free) - start).square().mean(dim=(1, 2))
            recolored = (deterministic.average(drawn, TILES) - colors).square().mean(dim=(1, 2, 3))
            loss = 1 - similarity + PRIOR * moved + COLORS * recolored
            (free.grad,) = torch.autograd.grad(loss.sum(), free)
            optimizer.step()
    return free.detach()
