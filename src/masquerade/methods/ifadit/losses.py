"""iFADIT: the background refinement (Eq. 11), and the losses of both phases (Eq. 12-13 and 15-20).

Norms are means over elements, so that the weights have the same effect at every size (docs/ifadit.md). Images are
(N, 3, H, W) in [-1, 1]; identity vectors (N, D), unit; points (N, 68, 2) in shares of the image's side.
"""

import torch
from torch import Tensor
from torch.nn.functional import conv2d, cosine_similarity

from masquerade.core.annotations import CLASSES, FACE
from masquerade.networks import deterministic

WINDOW, SIGMA = 5, 1.5  # radius and width of SSIM's Gaussian window: Wang et al. 2004
C1, C2 = 0.01**2, 0.03**2  # for images in [0, 1]
PUBLISHED_SIZE, PUBLISHED_RADIUS = 256, 7  # the published code blurs 256-pixel images with 15 x 15 pixels
PUBLISHED_SIGMA = 2.6  # OpenCV's sigma for 15 pixels: 0.3 (7 - 1) + 0.8
REGIONS = {"face": FACE, "head": (*FACE, "l_ear", "r_ear", "ear_r", "hair", "hat")}
"""Region -> its classes: those inside the outline of the face, or all of the head. The rest is background."""


def soft_mask(labels: Tensor, region: str) -> Tensor:
    """M of Eq. 11: parsing labels (N, H, W) -> (N, 1, H, W) in [0, 1], 1 inside the ``region`` (of `REGIONS`).

    It is the binary mask of its classes, blurred by a Gaussian whose size grows with the image.
    """
    inside = torch.tensor([CLASSES.index(name) for name in REGIONS[region]], dtype=labels.dtype, device=labels.device)
    return blur_mask(torch.isin(labels, inside).float()[:, None])


def blur_mask(mask: Tensor) -> Tensor:
    """A mask (N, 1, H, W) after the published Gaussian: 15 x 15 at 256 pixels, in proportion at other sizes."""
    scale = mask.shape[-1] / PUBLISHED_SIZE
    radius = max(1, round(PUBLISHED_RADIUS * scale))
    offsets = torch.arange(-radius, radius + 1, dtype=mask.dtype, device=mask.device)
    taps = torch.exp(-0.5 * (offsets / (PUBLISHED_SIGMA * scale)).square())
    taps = taps / taps.sum()
    mask = deterministic.reflect(mask, radius)
    mask = conv2d(mask, taps[None, None, None])
    return conv2d(mask, taps[None, None, :, None]).clamp(0, 1)


def refine(generated: Tensor, background: Tensor, mask: Tensor) -> Tensor:
    """Eq. 11: M * drawn + (1 - M) * background; images (N, 3, H, W), the mask (N, 1, H, W)."""
    return mask * generated + (1 - mask) * background


def structural_similarity(generated: Tensor, target: Tensor) -> Tensor:
    """SSIM (Wang et al. 2004, Eq. 13), (N,) in [-1, 1]: the mean over channels and pixels whose window is inside."""
    generated, target = (generated + 1) / 2, (target + 1) / 2  # SSIM is defined for brightness from 0 on
    moments = torch.stack([generated, target, generated * generated, target * target, generated * target])
    down, across = (_window(side).to(generated) for side in generated.shape[-2:])
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


def visual_quality_loss(generated: Tensor, target: Tensor, structure: float, pixels: float) -> Tensor:
    """L_VQ of Eq. 12: alpha (1 - SSIM) + beta L1, the mean over the images."""
    difference = (generated - target).abs().mean()
    return structure * (1 - structural_similarity(generated, target)).mean() + pixels * difference


def semantic_loss(generated: Tensor, target: Tensor) -> Tensor:
    """One of the two terms of L_Sem, Eq. 13: the mean absolute difference of vectors or of points."""
    return (generated - target).abs().mean()


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """theta^+ of Eq. 16: max(0, cosine), the mean over rows."""
    return cosine_similarity(first, second).clamp(min=0).mean()


def dissimilarity(first: Tensor, second: Tensor) -> Tensor:
    """theta^- of Eq. 19: 1 - cosine, the mean over rows."""
    return (1 - cosine_similarity(first, second)).mean()


def anonymity_loss(anonymized: Tensor, original: Tensor) -> Tensor:
    """L_Anon, Eq. 15."""
    return similarity(anonymized, original)


def diversity_loss(first: Tensor, second: Tensor) -> Tensor:
    """L_Div, Eq. 17. Rows 2 p and 2 p + 1 are two faces under one secret; ``first`` and ``second`` have two secrets."""
    between_faces = (similarity(first[0::2], first[1::2]) + similarity(second[0::2], second[1::2])) / 2
    return between_faces + similarity(first, second)


def recovery_loss(right: Tensor, wrong: Tensor, original: Tensor) -> Tensor:
    """L_DeAnon, Eq. 18, of faces recovered with the right secret and with a wrong one."""
    return dissimilarity(right, original) + similarity(wrong, original)


def parsing_loss(generated: Tensor, target: Tensor, squared: bool) -> Tensor:
    """The last term of L_Img, Eq. 20, of logits (N, classes, H, W), the mean over the images.

    The Euclidean norm of the difference, divided by the root of the number of logits, as the other norms are divided by
    their number. With ``squared``: the mean squared difference.
    """
    if squared:
        return (generated - target).square().mean()
    apart = (generated - target).flatten(1)
    return apart.norm(dim=1).mean() / apart.shape[1] ** 0.5  # the gradient of a norm of 0 is 0


def compensation_loss(corrected: Tensor, target: Tensor) -> Tensor:
    """The squared distance of the result of C from the vector of the drawn face, the mean over rows (ours)."""
    return (corrected - target).square().sum(dim=1).mean()
