"""What FIT's transformer is asked for (Gu et al. 2020, section 3, and the published code)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, relu


def cosine(first: Tensor, second: Tensor) -> Tensor:
    """Of unit vectors (N, D), (N, D) -> (N,)."""
    return (first * second).sum(dim=1)


def features(first: Tensor, second: Tensor, margin: float) -> Tensor:
    """L_feat: max(0, cos - margin), the mean over pairs of unit vectors (N, D) that should be two people's."""
    return relu(cosine(first, second) - margin).mean()


def identity(original: Tensor, who: Mapping[str, Tensor], margin: float) -> Tensor:
    """L_adv and L_rec_cls: who the recovered face is, and who the hidden and the wrongly recovered ones are not.

    Unit vectors (N, D), by how the face was made (`passwords.drawn`) -> the mean of three: 1 - cos of ``recovered``,
    `features` of what is hidden, and of what came back wrong. The paper asks a classifier that it trains along for the
    name; here an encoder that stays as it is, for the likeness (docs/fit.md).
    """
    hidden = [features(who[name], original, margin) for name in ("anonymized", "other")]
    wrong = [features(who[name], original, margin) for name in ("wrong", "wrong_too")]
    return ((1 - cosine(who["recovered"], original)).mean() + sum(hidden) / 2 + sum(wrong) / 2) / 3


def password(logits: Tensor, targets: Tensor) -> Tensor:
    """L_aux: cross-entropy of each group of bits, summed over the groups, mean over the pictures.

    ``logits`` (N, groups, classes), ``targets`` int64 (N, groups).
    """
    return cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]


def adversarial(fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of the transformer: mean (D - 1)^2, summed over the scales (LSGAN, Mao et al. 2017, Eq. 9)."""
    return torch.stack([(scores - 1).square().mean() for scores in fake]).sum()


def discrimination(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of a discriminator: 1/2 mean (D(real) - 1)^2 + 1/2 mean D(fake)^2, summed over scales (LSGAN, Eq. 9)."""
    losses = [(r - 1).square().mean() + f.square().mean() for r, f in zip(real, fake, strict=True)]
    return 0.5 * torch.stack(losses).sum()
