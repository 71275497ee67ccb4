"""The latent diffusion model of LDFA and its sampling (Rombach et al. 2022; Song et al. 2021, DDIM)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from masquerade.methods.ldfa.settings import LdfaSettings
from masquerade.networks import deterministic
from masquerade.networks.denoiser import TIMES, Denoiser, kept_shares
from masquerade.networks.latent_autoencoder import LatentAutoencoder


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
        self.register_buffer("kept", kept_shares().float(), persistent=False)
        self.strength, self.steps = 1.0, 20

    def encode(self, images: Tensor) -> Tensor:
        """Pictures -> latent maps with mean 0 and deviation 1 in each channel."""
        return (self.autoencoder.encoder(images) - self.mean) / self.deviation

    def decode(self, maps: Tensor) -> Tensor:
        """The inverse of `encode`."""
        return self.autoencoder.decoder(maps * self.deviation + self.mean)

    def noised(self, maps: Tensor, noise: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """x_t = a x + b n (Ho et al. 2020, Eq. 4) and v = a n - b x (Salimans and Ho 2022, appendix D)."""
        a, b = self._factors(times)
        return a * maps + b * noise, a * noise - b * maps

    def predicted(self, noisy: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """v of noisy maps; ``condition`` is that of `condition`."""
        return self.denoiser(torch.cat([noisy, condition], dim=1), times)

    def condition(self, hidden: Tensor, masks: Tensor) -> Tensor:
        """The latent map of the picture without the face, and the mask at its size: (N, L + 1, s, s)."""
        maps = self.encode(hidden)
        return torch.cat([maps, deterministic.averaged(masks, maps.shape[-2:])], dim=1)

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
            maps = self.noised(self.encode(guide), code, times[:1].expand(len(code)))[0]
        for time, after in pairwise(times):
            now = time.expand(len(maps))
            a, b = self._factors(now)
            v = self.predicted(maps, condition, now)
            clear, noise = a * maps - b * v, b * maps + a * v  # Salimans and Ho 2022, appendix D
            if after == 0:
                return self.decode(clear)
            a, b = self._factors(after.expand(len(maps)))
            maps = a * clear + b * noise  # DDIM with eta = 0: Song et al. 2021, Eq. 12
        return self.decode(maps)

    def _factors(self, times: Tensor) -> tuple[Tensor, Tensor]:
        kept = self.kept[times][:, None, None, None]
        return kept.sqrt(), (1 - kept).sqrt()
