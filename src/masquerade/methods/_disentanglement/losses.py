"""The losses of Stage I: IdentityDP (Wen et al. 2022), Eq. 14-17; Cao et al. 2021, Eq. 8-11, are the same.

The paper prints sums of squares. Here every squared norm is the mean over its elements, so that the weights of Eq. 18
have the same effect at every size of picture (see docs/identitydp.md).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, relu


def adversarial(fake: Sequence[Tensor]) -> Tensor:
    """The generator's L_adv, Eq. 14 in its hinge form: -mean D(X^), mean over the scales. ``fake``: score maps."""
    return torch.stack([-scores.mean() for scores in fake]).mean()


def discrimination(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """The discriminator's hinge loss, mean max(0, 1 - D(X)) + mean max(0, 1 + D(X^)), mean over the scales (Eq. 14)."""
    losses = [relu(1 - r).mean() + relu(1 + f).mean() for r, f in zip(real, fake, strict=True)]
    return torch.stack(losses).mean()


def identity(drawn: Tensor, target: Tensor) -> Tensor:
    """L_id = 1 - cos(r_id(X^), r_id(X)), Eq. 15, the mean over rows (N, D); 0 (same) .. 2 (opposite)."""
    return (1 - cosine_similarity(drawn, target)).mean()


def attributes(drawn: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """L_att = 1/2 sum_k ||r_att^k(X^) - r_att^k(X)||^2, Eq. 16, the mean over the pairs. Maps: (N, C, H, W)."""
    norms = [(d - t).square().mean() for d, t in zip(drawn, target, strict=True)]
    return 0.5 * torch.stack(norms).sum()


def reconstruction(drawn: Tensor, target: Tensor, same: Tensor) -> Tensor:
    """L_rec = 1/2 ||X^ - X||^2, Eq. 17, the mean over the ``same`` pairs, bool (N,); 0 without such a pair.

    Section IV.D: there is no target picture for a pair of different faces, so its L_rec is 0.
    """
    of_pair = 0.5 * (drawn - target).square().mean(dim=(1, 2, 3))
    return (of_pair * same).sum() / same.sum().clamp(min=1)
