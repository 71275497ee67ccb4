"""A small autoencoder of pictures, in whose latent maps a diffusion model works (Rombach et al. 2022, section 3.1)."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

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
