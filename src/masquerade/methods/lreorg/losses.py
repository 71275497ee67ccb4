"""The terms of LReOrg's losses (section 3.4, Eq. 5-10), as docs/lreorg.md reads them.

The first half of a batch of 2N rows is I_1 (or s_1), the second half is I_2. `exchanged` gives the partner of each row.
Every term is per pair.
"""

from typing import cast

from torch import Tensor


def exchanged(pairs: Tensor) -> Tensor:
    """(2N, ...) with its halves exchanged."""
    return pairs.roll(len(pairs) // 2, 0)


def cosine_distance(first: Tensor, second: Tensor) -> Tensor:
    """d of Eq. 6: 1 - cos of unit vectors (N, D) twice, (N,); 0 .. 2."""
    return 1 - (first * second).sum(-1)


def swapped_identity(original: Tensor, swapped: Tensor) -> Tensor:
    """L_I, Eq. 6, of unit identity vectors (2N, D); per pair, -4 .. 4.

    A swapped picture should have the identity of its partner and not its own.
    """
    return 2 * (cosine_distance(exchanged(original), swapped) - cosine_distance(original, swapped)).mean()


def kept_identity(original: Tensor, swapped: Tensor) -> Tensor:
    """L_I' of Eq. 8, of unit identity vectors (2N, D); per pair, 0 .. 4."""
    return 2 * cosine_distance(original, swapped).mean()


def latent(original: Tensor, swapped: Tensor) -> Tensor:
    """L_f, Eq. 7: the Euclidean distance of codes (2N, width); per pair."""
    return 2 * (original - swapped).norm(dim=-1).mean()


def information(lost: Tensor) -> Tensor:
    """L_r: the mean magnitude of the information loss (2N, width); per pair."""
    return 2 * lost.abs().mean()


def swapped_attribute(original: Tensor, swapped: Tensor) -> Tensor:
    """L_s, Eq. 9 and 10, of log D (2N, C); per pair. A swapped picture should show the content of its partner.

    The cross-entropy -sum_j D(I_1, t_ij) log D(I_2', t_ij) and its counterpart; I_2' has the key feature of s_1.
    """
    return -2 * (exchanged(original).exp() * swapped).sum(-1).mean()


def others(original: Tensor, swapped: Tensor) -> Tensor:
    """The cross-entropy with the own original picture, for keywords that are not swapped: their content should stay."""
    return -2 * (original.exp() * swapped).sum(-1).mean()


def perceptual(original: list[Tensor], swapped: list[Tensor]) -> Tensor:
    """eta of Eq. 5: mean squared differences of feature maps (2N, C, H, W), the mean over maps; per pair.

    The difference of a map is divided by the mean square of the original map, so that all maps have equal weight.
    """
    parts = [
        (made - known).square().mean() / known.square().mean() for known, made in zip(original, swapped, strict=True)
    ]
    return 2 * cast("Tensor", sum(parts)) / len(parts)
