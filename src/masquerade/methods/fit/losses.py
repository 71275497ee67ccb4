"""The losses of FIT (Gu et al. 2020, section 3, and the published code)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, relu


def cosine(first: Tensor, second: Tensor) -> Tensor:
    """Cosine of unit vectors, row by row: (N, D) twice -> (N,)."""
    return (first * second).sum(dim=1)


def features(first: Tensor, second: Tensor, margin: float) -> Tensor:
    """L_feat: max(0, cos - margin), the mean over pairs of unit vectors (N, D) that should be of different people."""
    return relu(cosine(first, second) - margin).mean()


def identity(original: Tensor, vectors: Mapping[str, Tensor], margin: float, both: bool) -> Tensor:
    """L_adv and L_rec_cls: the recovered face keeps the identity; hidden and wrongly recovered faces do not.

    ``vectors``: unit vectors (N, D) by the kind of face (`passwords.drawn`). The loss is the mean of three terms:
    1 - cos of ``recovered``, `features` of the hidden faces, and `features` of the wrongly recovered ones. ``both``:
    also of the face hidden with a second password, and of the second wrongly recovered one, which the published code
    leaves out. The paper trains a classifier of names for this; our encoder is frozen and compares identities
    (docs/fit.md).
    """

    def different(*names: str) -> Tensor:
        return torch.stack([features(vectors[name], original, margin) for name in names[: 1 + both]]).mean()

    recovered = (1 - cosine(vectors["recovered"], original)).mean()
    return (recovered + different("anonymized", "other") + different("wrong", "wrong_too")) / 3


def password(logits: Tensor, targets: Tensor) -> Tensor:
    """L_aux: cross-entropy of each group of bits, the sum over groups and the mean over pictures.

    ``logits`` (N, groups, classes), ``targets`` int64 (N, groups).
    """
    return cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]


def adversarial(fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of the transformer: mean (D - 1)^2, the sum over the scales (LSGAN, Mao et al. 2017, Eq. 9)."""
    return torch.stack([(scores - 1).square().mean() for scores in fake]).sum()


def discrimination(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of a discriminator: 1/2 mean (D(real) - 1)^2 + 1/2 mean D(fake)^2, the sum over scales (LSGAN, Eq. 9)."""
    losses = [(r - 1).square().mean() + f.square().mean() for r, f in zip(real, fake, strict=True)]
    return 0.5 * torch.stack(losses).sum()
