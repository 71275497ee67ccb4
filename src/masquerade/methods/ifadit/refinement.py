"""Background refinement: iFADIT, section 3.4, Eq. 11."""

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.core.annotations import CLASSES, FACE
from masquerade.networks import deterministic

PUBLISHED_SIZE, PUBLISHED_RADIUS = 256, 7  # the published code blurs 256-pixel pictures with 15 x 15 pixels
PUBLISHED_SIGMA = 2.6  # OpenCV's sigma for 15 pixels: 0.3 (7 - 1) + 0.8
REGIONS = {"face": FACE, "head": (*FACE, "l_ear", "r_ear", "ear_r", "hair", "hat")}
"""Region -> its classes: those inside the outline of the face, or all of the head. The rest is background."""


def soft_mask(labels: Tensor, region: str) -> Tensor:
    """M of Eq. 11: parsing labels (N, H, W) -> (N, 1, H, W) in [0, 1], 1 inside the ``region`` (of `REGIONS`).

    It is the binary mask of its classes, blurred by a Gaussian whose size grows with the picture.
    """
    inside = torch.tensor([CLASSES.index(name) for name in REGIONS[region]], dtype=labels.dtype, device=labels.device)
    return blurred(torch.isin(labels, inside).float()[:, None])


def blurred(mask: Tensor) -> Tensor:
    """A mask (N, 1, H, W) after the published Gaussian: 15 x 15 at 256 pixels, in proportion at other sizes."""
    scale = mask.shape[-1] / PUBLISHED_SIZE
    radius = max(1, round(PUBLISHED_RADIUS * scale))
    offsets = torch.arange(-radius, radius + 1, dtype=mask.dtype, device=mask.device)
    taps = torch.exp(-0.5 * (offsets / (PUBLISHED_SIGMA * scale)).square())
    taps = taps / taps.sum()
    mask = deterministic.reflected(mask, radius)
    mask = functional.conv2d(mask, taps[None, None, None])
    return functional.conv2d(mask, taps[None, None, :, None]).clamp(0, 1)


def refine(made: Tensor, background: Tensor, mask: Tensor) -> Tensor:
    """Eq. 11: M * made + (1 - M) * background; pictures (N, 3, H, W), the mask (N, 1, H, W)."""
    return mask * made + (1 - mask) * background


def rounded(images: Tensor) -> Tensor:
    """Pictures clipped to [-1, 1] and rounded to 8 bits, with the gradient of pictures without rounding."""
    kept = images.clamp(-1, 1)
    return kept + ((kept.detach() + 1).mul(127.5).round().div(127.5) - 1 - kept.detach())
