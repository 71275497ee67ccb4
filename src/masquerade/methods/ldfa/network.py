"""The latent diffusion model of LDFA (Rombach et al. 2022): autoencoder, denoising U-Net and sampling.

The input of the denoiser has the form of Stable Diffusion's inpainting model: the noisy latent map, that of the picture
without the face, and the mask. It has no text. It predicts v (Salimans and Ho 2022), as few steps of training learn
noise worse. The sampling is DDIM (Song et al. 2021).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.methods.ldfa import LdfaSettings
from masquerade.networks import deterministic

GROUPS = 8
"""Groups of channels that are normalized together."""


class LatentAutoencoder(nn.Module):
    """Pictures (N, 3, S, S) in [-1, 1] <-> latent maps (N, ``latent``, s, s), s = S / 2 ** len(widths).

    ``widths``: channels after each halving.
    """

    def __init__(self, widths: Sequence[int], latent: int):
        super().__init__()
        down: list[nn.Module] = []
        for into, out in pairwise([3, *widths]):
            down += [nn.Conv2d(into, out, 4, 2, 1), norm(out), nn.SiLU(), Residual(out)]
        self.encoder = nn.Sequential(*down, nn.Conv2d(widths[-1], latent, 1))
        up: list[nn.Module] = [nn.Conv2d(latent, widths[-1], 3, padding=1), Residual(widths[-1])]
        for into, out in pairwise([*widths[::-1], widths[0]]):
            up += [nn.Upsample(scale_factor=2.0), nn.Conv2d(into, out, 3, padding=1), norm(out), nn.SiLU()]
            up += [Residual(out)]
        self.decoder = nn.Sequential(*up, nn.Conv2d(widths[0], 3, 3, padding=1))

    def forward(self, images: Tensor) -> Tensor:
        """The pictures, encoded and decoded."""
        return self.decoder(self.encoder(images))


class Residual(nn.Module):
    """x + f(x): norm, SiLU, convolution, twice."""

    def __init__(self, width: int):
        super().__init__()
        layers = [[norm(width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)] for _ in range(2)]
        self.layers = nn.Sequential(*(layer for some in layers for layer in some))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


def norm(width: int) -> nn.GroupNorm:
    """The norm of each picture, over groups of channels."""
    return nn.GroupNorm(GROUPS if width % GROUPS == 0 else 1, width)


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
        embedded = self.time(embed_times(times, self.waves))
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


def embed_times(times: Tensor, width: int) -> Tensor:
    """Times (N,) -> (N, width) of sines and cosines with periods up to PERIOD."""
    frequencies = torch.exp(-math.log(PERIOD) * torch.arange(width // 2, device=times.device) / (width // 2))
    angles = times[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), angles.new_zeros(len(times), width % 2)], dim=1)


def compute_signal_shares() -> Tensor:
    """The product of 1 - beta up to each time, float64 (TIMES,): alpha-bar of Ho et al. 2020, Eq. 4."""
    betas = torch.linspace(FIRST**0.5, LAST**0.5, TIMES, dtype=torch.float64).square()
    return (1 - betas).cumprod(dim=0)


class LatentInpainter(nn.Module):
    """Draws a region by diffusion, in the latent maps of an autoencoder.

    ``strength``: share of the schedule that is run. With less than 1 the start is the clear picture with noise, as the
    published program has it, so the face reaches the result. ``steps``: steps of the sampling if all of it is run.
    """

    mean: Tensor
    deviation: Tensor
    kept: Tensor

    def __init__(self, settings: LdfaSettings):
        super().__init__()
        self.autoencoder = LatentAutoencoder(settings.autoencoder.widths, settings.latent)
        self.denoiser = Denoiser(settings.latent, settings.denoiser.widths)
        self.register_buffer("mean", torch.zeros(1, settings.latent, 1, 1))
        self.register_buffer("deviation", torch.ones(1, settings.latent, 1, 1))
        self.register_buffer("kept", compute_signal_shares().float(), persistent=False)
        self.strength, self.steps = 1.0, 20

    def encode(self, images: Tensor) -> Tensor:
        """Pictures -> latent maps with mean 0 and deviation 1 in each channel."""
        return (self.autoencoder.encoder(images) - self.mean) / self.deviation

    def decode(self, maps: Tensor) -> Tensor:
        """The inverse of `encode`."""
        return self.autoencoder.decoder(maps * self.deviation + self.mean)

    def add_noise(self, maps: Tensor, noise: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """x_t = a x + b n (Ho et al. 2020, Eq. 4) and v = a n - b x (Salimans and Ho 2022, appendix D)."""
        a, b = self._factors(times)
        return a * maps + b * noise, a * noise - b * maps

    def predict(self, noisy: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """v of noisy maps; ``condition`` is that of `condition`."""
        return self.denoiser(torch.cat([noisy, condition], dim=1), times)

    def condition(self, hidden: Tensor, masks: Tensor) -> Tensor:
        """The latent map of the picture without the face, and the mask at its size: (N, L + 1, s, s)."""
        maps = self.encode(hidden)
        return torch.cat([maps, deterministic.average(masks, maps.shape[-2:])], dim=1)

    def forward(self, hidden: Tensor, masks: Tensor, guide: Tensor, code: Tensor) -> Tensor:
        """The picture that is drawn, (N, 3, S, S), not limited to [-1, 1].

        ``hidden`` (N, 3, S, S), gray in the region; ``masks`` (N, 1, S, S), 1 in the region to draw; ``guide``: the
        clear picture (N, 3, S, S), used only if ``strength`` is below 1; ``code`` (N, L, s, s): normal numbers.
        """
        condition = self.condition(hidden, masks)
        count = max(1, round(self.strength * self.steps))
        times = torch.linspace(self.strength * (TIMES - 1), 0, count + 1, device=code.device).round().long()
        maps = code
        if self.strength < 1:
            maps = self.add_noise(self.encode(guide), code, times[:1].expand(len(code)))[0]
        for time, after in pairwise(times):
            now = time.expand(len(maps))
            a, b = self._factors(now)
            v = self.predict(maps, condition, now)
            clear, noise = a * maps - b * v, b * maps + a * v  # Salimans and Ho 2022, appendix D
            if after == 0:
                return self.decode(clear)
            a, b = self._factors(after.expand(len(maps)))
            maps = a * clear + b * noise  # DDIM with eta = 0: Song et al. 2021, Eq. 12
        return self.decode(maps)

    def _factors(self, times: Tensor) -> tuple[Tensor, Tensor]:
        kept = self.kept[times][:, None, None, None]
        return kept.sqrt(), (1 - kept).sqrt()
