"""The denoising U-Net of a latent diffusion model that inpaints (Rombach et al. 2022), small, and its noise schedule.

Its input has the form of Stable Diffusion's inpainting model: the noisy latent map, that of the picture without the
face, and the mask. It has no text. It predicts v (Salimans and Ho 2022), as few steps of training learn noise worse.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.latent_autoencoder import norm

TIMES = 1000
"""Times of the schedule."""
FIRST, LAST = 0.00085, 0.0120  # betas of Stable Diffusion, linear in their roots
PERIOD = 10000.0  # of the slowest wave of the embedding of time (Vaswani et al. 2017, section 3.5)


class Denoiser(nn.Module):
    """(N, 2 L + 1, s, s) and times (N,) -> v, (N, L, s, s). ``widths``: channels at s, s / 2, ..."""

    def __init__(self, latent: int, widths: Sequence[int]):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(widths[0], widths[-1]), nn.SiLU(), nn.Linear(widths[-1], widths[-1]))
        self.waves = widths[0]
        self.first = nn.Conv2d(2 * latent + 1, widths[0], 3, padding=1)
        coarser = list(zip(widths, [*widths[1:], widths[-1]], strict=True))[:-1]
        timed = widths[-1]
        self.down = nn.ModuleList(TimedBlock(a, a, timed) for a, _ in coarser)
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in coarser)
        self.middle = nn.ModuleList(
            [TimedBlock(timed, timed, timed), Attention(timed), TimedBlock(timed, timed, timed)]
        )
        self.enlarge = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1) for a, b in reversed(coarser))
        self.up = nn.ModuleList(TimedBlock(2 * a, a, timed) for a, _ in reversed(coarser))
        self.last = nn.Sequential(norm(widths[0]), nn.SiLU(), nn.Conv2d(widths[0], latent, 3, padding=1))

    def forward(self, maps: Tensor, times: Tensor) -> Tensor:
        embedded = self.time(waves(times, self.waves))
        features, skips = self.first(maps), []
        for block, halve in zip(self.down, self.shrink, strict=True):
            features = block(features, embedded)
            skips.append(features)
            features = halve(features)
        first, attention, second = self.middle
        features = second(attention(first(features, embedded)), embedded)
        for double, block in zip(self.enlarge, self.up, strict=True):
            features = double(functional.interpolate(features, scale_factor=2.0, mode="nearest"))
            features = block(torch.cat([features, skips.pop()], dim=1), embedded)
        return self.last(features)


class TimedBlock(nn.Module):
    """A residual block whose second norm is scaled and shifted by the time."""

    def __init__(self, inputs: int, outputs: int, timed: int):
        super().__init__()
        self.norm1, self.first = norm(inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.second = norm(outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(timed, 2 * outputs)
        self.beside = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        scale, shift = self.time(embedded)[:, :, None, None].chunk(2, dim=1)
        deep = self.first(functional.silu(self.norm1(x)))
        deep = self.second(functional.silu(self.norm2(deep) * (1 + scale) + shift))
        return self.beside(x) + deep


class Attention(nn.Module):
    """x + self-attention over the pixels, with one head."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.parts, self.out = norm(width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=2)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(1, 2).unflatten(2, x.shape[2:]))


def waves(times: Tensor, width: int) -> Tensor:
    """Times (N,) -> (N, width) of sines and cosines with periods up to PERIOD."""
    frequencies = torch.exp(-math.log(PERIOD) * torch.arange(width // 2, device=times.device) / (width // 2))
    angles = times[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), angles.new_zeros(len(times), width % 2)], dim=1)


def kept_shares() -> Tensor:
    """The product of 1 - beta up to each time, float64 (TIMES,): alpha-bar of Ho et al. 2020, Eq. 4."""
    betas = torch.linspace(FIRST**0.5, LAST**0.5, TIMES, dtype=torch.float64).square()
    return (1 - betas).cumprod(dim=0)
