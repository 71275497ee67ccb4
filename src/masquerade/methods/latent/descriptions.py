"""Describes a face in few bytes: its latent code in the directions in which codes vary most, with 8 bits a number.
The first byte is `FORMAT`.

The code of all layers is the mean of the layers, and for each layer its difference from that mean. Both are written in
principal coordinates of W, of which random codes have deviation 1: the first `SHARED` ones of the mean, and of each
layer as many as the bytes allow.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from masquerade.core.errors import SealError
from masquerade.core.sealing import LONGEST_CONTENT
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.latent_encoders import PrincipalCodes

FORMAT = 1
SHARED = 119
LIMIT = 6.0
"""The largest coordinate that is kept; larger ones are cut to it."""
STEPS = 127
"""The largest magnitude of a number."""
DRAWS = 4096
"""Random codes of which the principal coordinates are those."""


class CodeDescriptions:
    """Writes and reads the descriptions of faces of one latent space."""

    def __init__(self, space: LatentSpace):
        self.space, generator = space, space.generator
        self._principal = PrincipalCodes(generator.style_width)
        with torch.no_grad():
            self._principal.measure(generator.map(_draw_normals(generator.style_width).to(space.device)).cpu())
        self._mean = generator.broadcast(generator.latent_avg[None]).cpu()[0]  # (layers, style)
        layers, style = self._mean.shape
        self._shared = min(SHARED, style)
        self._own = min((LONGEST_CONTENT - 1 - self._shared) // layers, style)

    def write(self, codes: Tensor) -> list[bytes]:
        """W+ (N, layers, style) -> the description of each, at most `LONGEST_CONTENT` bytes."""
        coordinates = self._principal.coordinates(codes - self._mean)
        shared = coordinates.mean(dim=1)[:, : self._shared]
        kept = torch.zeros_like(coordinates)
        kept[:, :, : self._shared] = _restore(_round(shared))[:, None]
        own = (coordinates - kept)[:, :, : self._own]
        numbers = torch.cat([_round(shared), _round(own).flatten(1)], dim=1)
        return [bytes([FORMAT]) + row.tobytes() for row in numbers.numpy()]

    def read(self, descriptions: Sequence[bytes]) -> Tensor:
        """The inverse of `write`, up to what was cut and rounded: W+ (N, layers, style).

        Raises SealError for a description of another format.
        """
        layers, style = self._mean.shape
        length = 1 + self._shared + layers * self._own
        if any(len(each) != length or each[0] != FORMAT for each in descriptions):
            raise SealError("the record in its file is that of another version; recover it with the one that wrote it")
        numbers = _restore(
            torch.from_numpy(np.stack([np.frombuffer(each, np.int8, offset=1) for each in descriptions]))
        )
        coordinates = torch.zeros(len(numbers), layers, style)
        coordinates[:, :, : self._shared] = numbers[:, None, : self._shared]
        coordinates[:, :, : self._own] += numbers[:, self._shared :].unflatten(1, (layers, self._own))
        return self._mean + self._principal.offsets(coordinates)


def _draw_normals(width: int) -> Tensor:
    """`DRAWS` normal vectors (DRAWS, width), the same for ever.

    NumPy promises that the bits of PCG64 never change (NEP 19); no library promises it of normal numbers.
    """
    bits = np.random.PCG64(0).random_raw(DRAWS * width).astype(np.uint64)
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    return torch.from_numpy(ndtri(uniform).reshape(DRAWS, width)).float()


def _round(coordinates: Tensor) -> Tensor:
    return (coordinates.clamp(-LIMIT, LIMIT) * (STEPS / LIMIT)).round().to(torch.int8)


def _restore(numbers: Tensor) -> Tensor:
    return numbers.float() * (LIMIT / STEPS)
