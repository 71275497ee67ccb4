"""The terms of RiDDLE's loss (Li et al. 2023), as docs/riddle.md reads them, and our further terms."""

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.generator.reconstruction import energy_distance

LAYOUT = 8  # side in pixels of the pictures that `layout` compares


def different(known: Tensor, hidden: Tensor, hidden_other: Tensor, unlocked: Tensor, unlocked_other: Tensor) -> Tensor:
    """Cosines (6, N) of the pairs that should be different people, from unit vectors (N, D).

    The faces are the original, the original encrypted with two passwords, and the first of these decrypted with two
    wrong passwords. All pairs count except an encrypted face with a wrongly decrypted one.
    """
    pairs = ((hidden, known), (hidden_other, known), (hidden, hidden_other),
             (unlocked, known), (unlocked_other, known), (unlocked, unlocked_other))  # fmt: skip
    return torch.stack([(first * second).sum(-1) for first, second in pairs])


def reversed_identity(cosines: Tensor, margin: float) -> Tensor:
    """max(0, cos - margin), the mean; 0 .. 1 - margin."""
    return functional.relu(cosines - margin).mean()


def reversed_latents(cosines: Tensor, margin: float) -> Tensor:
    """max(0, |cos| - margin), the mean; 0 .. 1 - margin. A negated code reveals as much as the code itself."""
    return functional.relu(cosines.abs() - margin).mean()


def identity_recovery(made: Tensor, target: Tensor) -> Tensor:
    """1 - cos of unit identity vectors (N, D) twice, the mean; 0 (same) .. 2 (opposite)."""
    return 1 - (made * target).sum(-1).mean()


def layout(made: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference of pictures (N, 3, S, S), reduced to LAYOUT pixels: pose, hair, colours, background."""
    return (functional.adaptive_avg_pool2d(made, LAYOUT) - functional.adaptive_avg_pool2d(target, LAYOUT)).abs().mean()


def distribution(made: Tensor, real: Tensor) -> Tensor:
    """Energy distance of codes (N, K) and (M, K), divided by sqrt(K); 0 for equal distributions."""
    return energy_distance(made, real) / made.shape[1] ** 0.5


def as_saved(images: Tensor) -> Tensor:
    """Pictures clipped to [-1, 1] and rounded to 8 bits, as a PNG holds them; the gradient is that without rounding."""
    clipped = images.clamp(-1, 1)
    return clipped + (((clipped + 1) * 127.5).round() / 127.5 - 1 - clipped).detach()
