"""The terms of RiDDLE's loss (Li et al. 2023), as its published code computes them, and our further terms."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.generator.reconstruction import energy_distance
from masquerade.networks import deterministic

LAYOUT = 8  # side in pixels of the pictures that `layout_loss` compares


def published_identity_losses(
    original: Tensor, encrypted: Tensor, encrypted_other: Tensor, recovered: Tensor, wrong: Tensor, wrong_other: Tensor,
    margin: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The reversed identity loss (0 .. 2) and the identity recovery loss (0 .. 1 - ``margin``) of the published code.

    Embeddings, unit vectors (N, D), of the faces of `compare_different` and of the face that the right password
    recovers. The first loss is the sum of two means of max(cos, margin): enc, of the original with both encrypted
    faces, and dec, of both wrongly decrypted faces with the original and with the recovered face. Pairs inside enc and
    dec (two encrypted faces, two wrongly decrypted ones) have the weight 0 there. The second loss is the mean of
    1 - max(cos, margin), which has no gradient while a recovered face is farther from the original than the margin.
    """

    def bounded(pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        return torch.stack([(first * second).sum(-1).clamp(min=margin) for first, second in pairs]).mean()

    enc = bounded([(original, encrypted), (original, encrypted_other)])
    dec = bounded([(recovered, wrong), (recovered, wrong_other), (original, wrong), (original, wrong_other)])
    return enc + dec, 1 - bounded([(recovered, original)])


def pixel_loss(five: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference of each of five pictures (5, N, 3, S, S) from ``target`` (N, 3, S, S), the sum."""
    return (five - target).abs().mean(dim=(1, 2, 3, 4)).sum()


def compare_different(
    original: Tensor, encrypted: Tensor, encrypted_other: Tensor, wrong: Tensor, wrong_other: Tensor
) -> Tensor:
    """Cosines (6, N) of the pairs that should be different people, from unit vectors (N, D).

    The faces are the original, the original encrypted with two passwords, and the first of these decrypted with two
    wrong passwords. All pairs count except an encrypted face with a wrongly decrypted one.
    """
    pairs = ((encrypted, original), (encrypted_other, original), (encrypted, encrypted_other),
             (wrong, original), (wrong_other, original), (wrong, wrong_other))  # fmt: skip
    return torch.stack([(first * second).sum(-1) for first, second in pairs])


def reversed_identity_loss(cosines: Tensor, margin: float) -> Tensor:
    """max(0, cos - margin), the mean; 0 .. 1 - margin."""
    return functional.relu(cosines - margin).mean()


def reversed_latent_loss(cosines: Tensor, margin: float) -> Tensor:
    """max(0, |cos| - margin), the mean; 0 .. 1 - margin. A negated code reveals as much as the code itself."""
    return functional.relu(cosines.abs() - margin).mean()


def identity_recovery_loss(made: Tensor, target: Tensor) -> Tensor:
    """1 - cos of unit identity vectors (N, D) twice, the mean; 0 (same) .. 2 (opposite)."""
    return 1 - (made * target).sum(-1).mean()


def layout_loss(made: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference of pictures (N, 3, S, S), reduced to LAYOUT pixels: pose, hair, colors, background."""
    small, wanted = (deterministic.average(images, (LAYOUT, LAYOUT)) for images in (made, target))
    return (small - wanted).abs().mean()


def distribution_loss(made: Tensor, real: Tensor) -> Tensor:
    """Energy distance of codes (N, K) and (M, K), divided by sqrt(K); 0 for equal distributions."""
    return energy_distance(made, real) / made.shape[1] ** 0.5


def round_to_8_bits(images: Tensor) -> Tensor:
    """Pictures clipped to [-1, 1] and rounded to 8 bits, as a PNG holds them; the gradient is that without rounding."""
    clipped = images.clamp(-1, 1)
    return clipped + (((clipped + 1) * 127.5).round() / 127.5 - 1 - clipped).detach()


EVERY, SHARE = 6, 0.5  # fast steps for each slow step, and the length of a slow step: Zhang et al. 2019, section 3


class Ranger(torch.optim.RAdam):
    """RAdam with LookAhead: every 6 steps the weights go back half of the way since the last such step."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, lr=lr, betas=(0.95, 0.999), eps=1e-5)

    @torch.no_grad()
    def step(self, closure=None):
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        slow = [self.state[weight].get("slow", weight.detach().clone()) for weight in weights]
        loss = super().step(closure)
        for weight, kept in zip(weights, slow, strict=True):
            state = self.state[weight]
            state["slow"] = kept
            if int(state["step"]) % EVERY == 0:
                weight.copy_(kept.lerp_(weight, SHARE))  # phi <- phi + alpha (theta - phi), theta <- phi
        return loss
