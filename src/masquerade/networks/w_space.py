"""Codes of W: coordinates in which random codes are standard normal, and a discriminator of codes."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks.stylegan2_layers import SLOPE, ActivatedLinear, EqualLinear

INVERSE_SLOPE = 5.0  # undoes the leaky ReLU of slope 0.2 at the end of the mapping (Zhu et al. 2020)
SAMPLES = 10_000  # random codes of which the coordinates are measured
SMALLEST = 1e-2  # deviations below this share of the largest one count as it


class PNSpace:
    """The principal coordinates of codes after the inverse of the mapping's last activation, with deviation 1.

    ``codes`` (M, style): codes of W of which mean and deviations are taken. The mean square of the coordinates is about
    1 for a code as random faces have it. It grows where the generator was never trained, whatever the direction.
    """

    def __init__(self, codes: Tensor):
        flat = functional.leaky_relu(codes, INVERSE_SLOPE)
        self.mean = flat.mean(0)
        values, directions = torch.linalg.eigh(flat.double().T.cov())
        deviations = values.clamp(min=SMALLEST**2 * float(values[-1])).sqrt()  # the values rise
        self.whitening = (directions / deviations).to(codes.dtype)

    @classmethod
    def of(cls, generator) -> "PNSpace":
        """That of a generator's W, measured on `SAMPLES` random codes."""
        z = torch.randn(SAMPLES, generator.style_width, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            return cls(generator.map(z.to(generator.latent_avg.device)))

    def __call__(self, codes: Tensor) -> Tensor:
        """The coordinates of codes (..., style), of the same shape."""
        return (functional.leaky_relu(codes, INVERSE_SLOPE) - self.mean) @ self.whitening


class CodeDiscriminator(nn.Module):
    """Codes (N, style) -> logits (N, 1) of being in W: Nitzan et al. 2020, as in Tov et al. 2021, section 4.1.2.

    ``layers``: hidden ones, with leaky rectifiers of slope 0.2. ``equalized``: layers of StyleGAN2, not plain ones.
    """

    def __init__(self, style: int, layers: int, equalized: bool):
        super().__init__()

        def hidden() -> nn.Module:
            if equalized:
                return ActivatedLinear(style, style)
            return nn.Sequential(nn.Linear(style, style), nn.LeakyReLU(SLOPE))

        last = EqualLinear(style, 1) if equalized else nn.Linear(style, 1)
        self.layers = nn.Sequential(*(hidden() for _ in range(layers)), last)

    def forward(self, codes: Tensor) -> Tensor:
        return self.layers(codes)
