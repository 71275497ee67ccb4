"""Codes of W: linear ones of an image, coordinates in which random codes are normal, and a discriminator of codes."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.networks import deterministic
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


SMALL = 32  # side in pixels of the images of which the codes are computed
SPREAD = 0.25  # the deviations of the codes are those of the components to the power of 2 * SPREAD


class LinearCodes(nn.Module):
    """Images (N, 3, S, S) in [-1, 1], S a multiple of SMALL or below it -> codes (N, width).

    The map has 16-bit floats, so that weights/ holds it exactly.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, side: int, width: int):
        super().__init__()
        self.side = side
        self.register_buffer("weight", torch.zeros(3 * side * side, width, dtype=torch.float16))
        self.register_buffer("bias", torch.zeros(width))

    def forward(self, images: Tensor) -> Tensor:
        return self._small(images) @ self.weight.float() + self.bias

    def _small(self, images: Tensor) -> Tensor:
        return deterministic.average(images, (self.side,) * 2).flatten(1)

    @torch.no_grad()
    def learn(self, batches: Iterable[Tensor], by: Tensor, seed: int) -> None:
        """Set the map from M images, given in batches (N, 3, S, S) in [-1, 1].

        Pixels are weighted by the root of ``by`` (1, S, S). The codes have mean 0 and are uncorrelated. Their
        deviations are those of the components to the power of 2 SPREAD, with mean 1: components that change much of a
        image stay large, because they are easier to decode, and small components are not lost. If there are fewer
        images than ``width``, the last codes are 0. The signs of the codes depend on the processor and on the
        number of threads, so a training keeps its map.
        """
        torch.manual_seed(seed)
        scale = deterministic.average(by.sqrt()[None], (self.side,) * 2)[0].expand(3, -1, -1).flatten()
        small = torch.cat([self._small(batch) for batch in batches])
        mean = small.mean(dim=0)
        centered = (small - mean).mul_(scale)
        rank = min(len(self.bias), *centered.shape)
        _, values, basis = torch.pca_lowrank(centered, q=rank, center=False, niter=3)
        deviation = values / len(centered) ** 0.5
        basis = basis / deviation.clamp(min=1e-6) * (deviation / deviation.mean()) ** (1 - 2 * SPREAD)
        self.weight[:, :rank] = scale[:, None] * basis
        self.bias.copy_(-mean @ self.weight.float())


def choose_linear_side(layers: int) -> int:
    """The side of the images of which the codes of a generator with so many style layers are computed."""
    return min(SMALL, 2 ** ((layers + 2) // 2))


def load_linear_codes(state: dict[str, Tensor]) -> LinearCodes:
    """The map with these tensors."""
    inputs, width = state["weight"].shape
    codes = LinearCodes(round((inputs / 3) ** 0.5), width)
    codes.load_state_dict(state)
    return codes
