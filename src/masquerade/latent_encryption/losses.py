"""The terms of RiDDLE's loss (Li et al. 2023), as docs/riddle.md reads them, and ours beside them."""

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones._reconstruction import energy_distance

LAYOUT = 8  # pixels of the pictures that `layout` compares


def different(known: Tensor, hidden: Tensor, hidden_other: Tensor, unlocked: Tensor, unlocked_other: Tensor) -> Tensor:
    """Cosines (6, N) of the pairs that are to be different people, from unit vectors (N, D).

    The original, it encrypted with two passwords, and the first of these decrypted with two wrong ones: no two of them
    are to be alike but the encrypted and the wrongly decrypted.
    """
    pairs = ((hidden, known), (hidden_other, known), (hidden, hidden_other),
             (unlocked, known), (unlocked_other, known), (unlocked, unlocked_other))  # fmt: skip
    return torch.stack([(first * second).sum(-1) for first, second in pairs])


def reversed_identity(cosines: Tensor, margin: float) -> Tensor:
    """max(0, cos - margin), the mean; 0 .. 1 - margin."""
    return functional.relu(cosines - margin).mean()


def reversed_latents(cosines: Tensor, margin: float) -> Tensor:
    """max(0, |cos| - margin), the mean; 0 .. 1 - margin: a mirrored code tells as much as the code itself."""
    return functional.relu(cosines.abs() - margin).mean()


def identity_recovery(made: Tensor, wanted: Tensor) -> Tensor:
    """1 - cos of unit identity vectors (N, D) twice, the mean; 0 (same) .. 2 (opposite)."""
    return 1 - (made * wanted).sum(-1).mean()


def layout(made: Tensor, wanted: Tensor) -> Tensor:
    """Mean absolute difference of pictures (N, 3, S, S) averaged to LAYOUT pixels: pose, hair, colours, background."""
    return (functional.adaptive_avg_pool2d(made, LAYOUT) - functional.adaptive_avg_pool2d(wanted, LAYOUT)).abs().mean()


def distribution(made: Tensor, real: Tensor) -> Tensor:
    """Energy distance of codes (N, K) and (M, K) as root mean squares of their numbers; 0: of one distribution."""
    return energy_distance(made, real) / made.shape[1] ** 0.5


def as_saved(images: Tensor) -> Tensor:
    """Pictures in [-1, 1] as their 8-bit PNG holds them; the gradient passes as if they had not been rounded."""
    clipped = images.clamp(-1, 1)
    return clipped + (((clipped + 1) * 127.5).round() / 127.5 - 1 - clipped).detach()
