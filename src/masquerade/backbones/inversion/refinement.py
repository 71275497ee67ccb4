"""An optimization of codes after the encoder: it finds the person, where the encoder finds pose, hair and expression.

Abdal et al. 2019 (Image2StyleGAN, arXiv:1904.03189) optimize W+ so. Without a prior the codes leave the space that the
generator knows: the picture is right, and what is made of it by exchanging layers is not. So each layer's distance from
random codes is penalized in P_N space (Zhu et al. 2020, arXiv:2012.09036).
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.inversion.settings import RefinementSettings
from masquerade.networks import lpips
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.networks.w_space import PNSpace
from masquerade.training import precision

BETAS = (0.9, 0.99)  # of Adam
LAST = 0.2  # share of the learning rate at the last step
COARSE = 8  # pixels a side over which `coarse` takes means
AT_ONCE = 4  # faces in a forward pass: more do not fit into the caches of a processor


def refined(
    codes: Tensor, images: Tensor, generator: MobileStyleGAN, space: PNSpace, settings: RefinementSettings,
    seen: Tensor | None = None, further: Callable[[Tensor, slice], Tensor] | None = None,
) -> Tensor:  # fmt: skip
    """W+ (N, layers, style) after ``settings.steps`` steps of Adam on the errors of the pictures (N, 3, S, S) it draws.

    All faces are optimized together, each with its own code and state, so a face does not depend on its batch.
    ``seen`` (N, 1, S, S): 1 where ``images``, which are 0 elsewhere, count; None: everywhere. ``further``: another
    error (n,) of drawn pictures (n, 3, S, S), which are those of these rows.
    """
    network = loss_network(images.device) if settings.perceptual else None
    with torch.enable_grad():
        codes = codes.detach().clone().requires_grad_(True)
        optimizer = torch.optim.Adam([codes], betas=BETAS)
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(codes), AT_ONCE)]
        known = [lpips.units(network, images[rows]) if network else [] for rows in parts]
        for step in range(settings.steps):
            optimizer.zero_grad(set_to_none=False)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - (1 - LAST) * step / settings.steps)
            for rows, units in zip(parts, known, strict=True):
                few = codes[rows]
                drawn = generator.synthesize(few)
                made = drawn if seen is None else drawn * seen[rows]
                errors = picture_errors(made, images[rows], settings)
                if network:
                    with precision.mixed(images.device, True, frozen=True):
                        apart = lpips.distance(lpips.units(network, made), units)
                    errors = errors + settings.perceptual * apart
                errors = errors + settings.prior * space(few).square().mean((1, 2))
                if further:
                    errors = errors + further(drawn, rows)
                errors.sum().backward()
            optimizer.step()
    return codes.detach()


def picture_errors(made: Tensor, targets: Tensor, settings: RefinementSettings) -> Tensor:
    """The weighted squared errors of pixels, and of means over squares, of each picture (N,)."""
    coarse = functional.avg_pool2d(made, COARSE) - functional.avg_pool2d(targets, COARSE)
    pixels = (made - targets).square().mean((1, 2, 3))
    return settings.pixels * pixels + settings.coarse * coarse.square().mean((1, 2, 3))


@cache
def loss_network(device: torch.device) -> torch.nn.Module:
    """LPIPS on AlexNet, once in a process. Raises CheckpointError if AlexNet is not available."""
    return lpips.perceptual(device, "backbones.inversion.refinement.perceptual")
