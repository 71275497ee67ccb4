"""The losses of Stage I: IdentityDP (Wen et al. 2022), Eq. 14-17; Cao et al. 2021, Eq. 8-11, are the same.

The paper prints sums of squares; by default every squared norm is the mean over its elements, so that the weights of
Eq. 18 mean the same at every size of picture (see docs/identitydp.md). With ``sums`` it is as printed.
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


def identity(made: Tensor, wanted: Tensor) -> Tensor:
    """L_id = 1 - cos(r_id(X^), r_id(X)), Eq. 15; mean over (N, D) rows; 0 (same) .. 2 (opposite)."""
    return (1 - cosine_similarity(made, wanted)).mean()


def attributes(made: Sequence[Tensor], wanted: Sequence[Tensor], sums: bool = False) -> Tensor:
    """L_att = 1/2 sum_k ||r_att^k(X^) - r_att^k(X)||^2, Eq. 16, the mean over the pairs. Maps: (N, C, H, W)."""
    norms = [(m - w).square().mean() * _terms(m, sums) for m, w in zip(made, wanted, strict=True)]
    return 0.5 * torch.stack(norms).sum()


def reconstruction(made: Tensor, wanted: Tensor, same: Tensor, sums: bool = False) -> Tensor:
    """L_rec = 1/2 ||X^ - X||^2, Eq. 17, the mean over the pairs that are ``same`` (N,) bool; 0 where there is none.

    Section IV.D: a pair of different faces has no picture that it should be, so its L_rec is 0.
    """
    of_pair = 0.5 * (made - wanted).square().mean(dim=(1, 2, 3)) * _terms(made, sums)
    return (of_pair * same).sum() / same.sum().clamp(min=1)


def _terms(batch: Tensor, sums: bool) -> int:
    """What the mean of squares over the elements of one of a batch is multiplied by, to be their sum."""
    return batch[0].numel() if sums else 1
