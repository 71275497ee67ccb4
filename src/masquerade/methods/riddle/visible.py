"""Codes in the directions that an image shows (ours): what is encrypted in them alone is found again in the image.

Two codes of W+ can give the same image, so an image does not determine its code. The encoder of the inversion gives
codes that differ in few directions. An image that is drawn of a code in these directions determines their coordinates:
from the encoder's answer, steps of optimization lead to them. The same steps find the coordinates whose image is most
like an original.
"""

from typing import Any

import torch
from torch import Tensor, nn

from masquerade.backbones.inversion import RefinementSettings
from masquerade.backbones.inversion.inverter import compare_identities, refine

LONGEST = 1.5
"""The largest length of coordinates, as a multiple of the root of their number, which is the length that the encoder's
codes of faces have. The coordinates that optimization finds for a face are up to 1.6 times as long."""


class VisibleCodes(nn.Module):
    """The first ``count`` principal directions of the codes that an encoder gives for faces.

    A code is the mean plus ``coordinates @ directions``; faces have coordinates of deviation 1.
    """

    mean: Tensor
    directions: Tensor

    def __init__(self, layers: int, style: int, count: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(layers * style))
        self.register_buffer("directions", torch.zeros(count, layers * style))

    @torch.no_grad()
    def measure(self, codes: Tensor) -> None:
        """Set mean and directions from the codes (M, layers, style) of faces, M > ``count``."""
        flat = codes.flatten(1).double()
        centered = flat - flat.mean(dim=0)
        vectors = torch.linalg.eigh(centered @ centered.T / len(flat))[1]  # rising; of M faces, not of all numbers
        chosen = vectors.flip(1)[:, : len(self.directions)].T  # (count, M)
        directions = chosen @ centered / len(flat) ** 0.5  # their lengths are the deviations
        largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
        self.mean.copy_(flat.mean(dim=0))
        self.directions.copy_(directions * largest.sign())  # processors differ in which of two signs they find

    def find_coordinates(self, codes: Tensor) -> Tensor:
        """Codes (N, layers, style) -> coordinates (N, count)."""
        return (codes.flatten(1) - self.mean) @ (self.directions / self.directions.square().sum(1, keepdim=True)).T

    def build_codes(self, coordinates: Tensor, layers: int) -> Tensor:
        """Coordinates (N, count) -> codes (N, layers, style)."""
        return (self.mean + coordinates @ self.directions).unflatten(1, (layers, -1))

    def forward(self, codes: Tensor) -> Tensor:
        """The codes (N, layers, style) reduced to the directions, at a length that faces have."""
        coordinates = self.find_coordinates(codes)
        longest = LONGEST * coordinates.shape[1] ** 0.5
        lengths = coordinates.norm(dim=1, keepdim=True)
        return self.build_codes(coordinates * (longest / lengths.clamp(min=longest)), codes.shape[1])

    def lengthen(self, codes: Tensor, factors: Tensor) -> Tensor:
        """The codes (N, layers, style) with coordinates that are ``factors`` (N,) times as long, at most LONGEST."""
        return self(self.build_codes(factors[:, None] * self.find_coordinates(codes), codes.shape[1]))

    def read(self, images: Tensor, start: Tensor, generator: Any, settings: RefinementSettings) -> Tensor:
        """The codes (N, layers, style) whose drawn images are nearest to images (N, 3, S, S), from ``start`` on.

        ``settings.prior`` weighs the mean square of the coordinates, which is 1 for the encoder's codes of faces.
        """
        further = compare_identities(images, settings.identity) if settings.identity else None
        drawn, coordinates = _DrawnCoordinates(self, generator), self.find_coordinates(start)
        found = refine(coordinates[:, None], images, drawn, lambda part: part, settings, further=further)
        return self.build_codes(found[:, 0], generator.layers)


class _DrawnCoordinates:
    """A generator whose codes are coordinates (N, 1, count)."""

    def __init__(self, visible: VisibleCodes, generator: Any):
        self._visible, self._generator = visible, generator

    def synthesize(self, coordinates: Tensor) -> Tensor:
        return self._generator.synthesize(self._visible.build_codes(coordinates[:, 0], self._generator.layers))
