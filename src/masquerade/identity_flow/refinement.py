"""Background refinement: iFADIT, section 3.4, Eq. 11."""

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.parsing import CLASSES, FACE

PUBLISHED_SIZE, PUBLISHED_RADIUS = 256, 7  # the published code blurs with 15 x 15 pixels at 256
PUBLISHED_SIGMA = 2.6  # what OpenCV takes for 15 pixels: 0.3 (7 - 1) + 0.8
REGIONS = {"face": FACE, "head": (*FACE, "l_ear", "r_ear", "ear_r", "hair", "hat")}
"""What is not background: the classes inside the face's outline, or all of the head."""


def soft_mask(labels: Tensor, region: str) -> Tensor:
    """M of Eq. 11: parsing labels (N, H, W) -> (N, 1, H, W) in [0, 1], 1 inside the ``region`` (of `REGIONS`).

    The binary mask of its classes, blurred by a Gaussian whose size grows with the picture.
    """
    inside = torch.tensor([CLASSES.index(name) for name in REGIONS[region]], dtype=labels.dtype, device=labels.device)
    return blurred(torch.isin(labels, inside).float()[:, None])


def blurred(mask: Tensor) -> Tensor:
    """(N, 1, H, W), blurred by the published 15 x 15 Gaussian at 256 pixels, in proportion at other sizes."""
    scale = mask.shape[-1] / PUBLISHED_SIZE
    radius = max(1, round(PUBLISHED_RADIUS * scale))
    places = torch.arange(-radius, radius + 1, dtype=mask.dtype, device=mask.device)
    taps = torch.exp(-0.5 * (places / (PUBLISHED_SIGMA * scale)).square())
    taps = taps / taps.sum()
    mask = functional.pad(mask, (radius,) * 4, mode="reflect")
    mask = functional.conv2d(mask, taps[None, None, None])
    return functional.conv2d(mask, taps[None, None, :, None]).clamp(0, 1)


def refine(made: Tensor, background: Tensor, mask: Tensor) -> Tensor:
    """Eq. 11: M * made + (1 - M) * background; pictures (N, 3, H, W), the mask (N, 1, H, W)."""
    return mask * made + (1 - mask) * background


def rounded(images: Tensor) -> Tensor:
    """Pictures as their 8-bit copies show them, with the gradient of pictures that were not rounded."""
    kept = images.clamp(-1, 1)
    return kept + ((kept.detach() + 1).mul(127.5).round().div(127.5) - 1 - kept.detach())
