"""Codes of a picture that are linear in its pixels: its scaled principal components."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from masquerade.networks import deterministic

SMALL = 32  # side in pixels of the pictures of which the codes are computed
SPREAD = 0.25  # the deviations of the codes are those of the components to the power of 2 * SPREAD


class LinearCodes(nn.Module):
    """Pictures (N, 3, S, S) in [-1, 1], S a multiple of SMALL or below it -> codes (N, width).

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
        """Set the map from M pictures, given in batches (N, 3, S, S) in [-1, 1].

        Pixels are weighted by the root of ``by`` (1, S, S). The codes have mean 0 and are uncorrelated. Their
        deviations are those of the components to the power of 2 SPREAD, with mean 1: components that change much of a
        picture stay large, because they are easier to decode, and small components are not lost. If there are fewer
        pictures than ``width``, the last codes are 0. The signs of the codes depend on the processor and on the
        number of threads, so a training keeps its map.
        """
        torch.manual_seed(seed)
        scale = deterministic.average(by.sqrt()[None], (self.side,) * 2)[0].expand(3, -1, -1).flatten()
        small = torch.cat([self._small(batch) for batch in batches])
        mean = small.mean(dim=0)
        centered = (small - mean).mul_(scale)
        used = min(len(self.bias), *centered.shape)
        _, values, basis = torch.pca_lowrank(centered, q=used, center=False, niter=3)
        deviation = values / len(centered) ** 0.5
        basis = basis / deviation.clamp(min=1e-6) * (deviation / deviation.mean()) ** (1 - 2 * SPREAD)
        self.weight[:, :used] = scale[:, None] * basis
        self.bias.copy_(-mean @ self.weight.float())


def linear_side(layers: int) -> int:
    """The side of the pictures of which the codes of a generator with so many style layers are computed."""
    return min(SMALL, 2 ** ((layers + 2) // 2))


def of_state(state: dict[str, Tensor]) -> LinearCodes:
    """The map with these tensors."""
    inputs, width = state["weight"].shape
    codes = LinearCodes(round((inputs / 3) ** 0.5), width)
    codes.load_state_dict(state)
    return codes
