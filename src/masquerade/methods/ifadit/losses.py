"""The losses of both phases: iFADIT, Eq. 12-13 and 15-20.

Norms are means over elements, so that the weights have the same effect at every size (see docs/ifadit.md). Pictures
are (N, 3, H, W) in [-1, 1]; identity vectors (N, D), unit; points (N, 68, 2) in shares of the picture's side.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

WINDOW, SIGMA = 5, 1.5  # radius and width of SSIM's Gaussian window: Wang et al. 2004
C1, C2 = 0.01**2, 0.03**2  # for pictures in [0, 1]


def structural_similarity(made: Tensor, target: Tensor) -> Tensor:
    """SSIM (Wang et al. 2004, Eq. 13), (N,) in [-1, 1]: the mean over channels and pixels whose window is inside."""
    made, target = (made + 1) / 2, (target + 1) / 2  # SSIM is defined for brightness from 0 on
    moments = torch.stack([made, target, made * made, target * target, made * target])
    down, across = (_window(side).to(made) for side in made.shape[-2:])
    moments = down @ moments @ across.T  # as a product of matrices the window is cheaper than as a convolution
    mean, target_mean, power, target_power, product = moments.unbind()
    variance, target_variance = power - mean.square(), target_power - target_mean.square()
    covariance = product - mean * target_mean
    similarity = (2 * mean * target_mean + C1) * (2 * covariance + C2)
    similarity = similarity / (mean.square() + target_mean.square() + C1) / (variance + target_variance + C2)
    return similarity.mean(dim=(1, 2, 3))


def _window(side: int) -> Tensor:
    """The Gaussian of each position whose window is inside, (side - 2 WINDOW, side)."""
    distance = torch.arange(side)[None] - torch.arange(WINDOW, side - WINDOW)[:, None]
    taps = torch.exp(-0.5 * (distance / SIGMA).square()) * (distance.abs() <= WINDOW)
    return taps / taps.sum(dim=1, keepdim=True)


def visual_quality(made: Tensor, target: Tensor, structure: float, pixels: float) -> Tensor:
    """L_VQ of Eq. 12: alpha (1 - SSIM) + beta L1, the mean over the pictures."""
    difference = (made - target).abs().mean()
    return structure * (1 - structural_similarity(made, target)).mean() + pixels * difference


def distance(made: Tensor, target: Tensor) -> Tensor:
    """One of the two terms of L_Sem, Eq. 13: the mean absolute difference of vectors or of points."""
    return (made - target).abs().mean()


def similar(first: Tensor, second: Tensor) -> Tensor:
    """theta^+ of Eq. 16: max(0, cosine), the mean over rows."""
    return cosine_similarity(first, second).clamp(min=0).mean()


def dissimilar(first: Tensor, second: Tensor) -> Tensor:
    """theta^- of Eq. 19: 1 - cosine, the mean over rows."""
    return (1 - cosine_similarity(first, second)).mean()


def anonymity(anonymized: Tensor, original: Tensor) -> Tensor:
    """L_Anon, Eq. 15."""
    return similar(anonymized, original)


def diversity(first: Tensor, second: Tensor) -> Tensor:
    """L_Div, Eq. 17. Rows 2 p and 2 p + 1 are two faces under one secret; ``first`` and ``second`` have two secrets."""
    between_faces = (similar(first[0::2], first[1::2]) + similar(second[0::2], second[1::2])) / 2
    return between_faces + similar(first, second)


def recovery(right: Tensor, wrong: Tensor, original: Tensor) -> Tensor:
    """L_DeAnon, Eq. 18, of faces recovered with the right secret and with a wrong one."""
    return dissimilar(right, original) + similar(wrong, original)


def parsing(made: Tensor, target: Tensor, norm: Literal["root", "square"]) -> Tensor:
    """The last term of L_Img, Eq. 20, of logits (N, classes, H, W), the mean over the pictures.

    root: the Euclidean norm of the difference, divided by the root of the number of logits, as the other norms are
    divided by their number; square: the mean squared difference.
    """
    if norm == "square":
        return (made - target).square().mean()
    apart = (made - target).flatten(1)
    return apart.norm(dim=1).mean() / apart.shape[1] ** 0.5  # the gradient of a norm of 0 is 0


def compensation(corrected: Tensor, target: Tensor) -> Tensor:
    """The squared distance of the result of C from the vector of the drawn face, the mean over rows (ours)."""
    return (corrected - target).square().sum(dim=1).mean()
