"""P_N space: coordinates of W in which random codes are standard normal (Zhu et al. 2020, arXiv:2012.09036)."""

import torch
from torch import Tensor
from torch.nn import functional

SLOPE = 5.0  # undoes the leaky ReLU of slope 0.2 at the end of the mapping (Zhu et al. 2020)
SAMPLES = 10_000  # random codes of which the coordinates are measured
SMALLEST = 1e-2  # deviations below this share of the largest one count as it


class PNSpace:
    """The principal coordinates of codes after the inverse of the mapping's last activation, with deviation 1.

    ``codes`` (M, style): codes of W of which mean and deviations are taken. The mean square of the coordinates is about
    1 for a code as random faces have it. It grows where the generator was never trained, whatever the direction.
    """

    def __init__(self, codes: Tensor):
        flat = functional.leaky_relu(codes, SLOPE)
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
        return (functional.leaky_relu(codes, SLOPE) - self.mean) @ self.whitening
