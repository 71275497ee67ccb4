"""Colours, textures and labels, and the layers of paint that are put on a surface."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import fft

from masquerade.core.annotations import CLASSES
from masquerade.core.seeding import generator
from masquerade.faces._drawn.person import Person

LABEL = {name: number for number, name in enumerate(CLASSES)}
"""Parsing class -> its number in a mask; in names with l_ and r_, l_ is the side on the left of the picture."""
TILE = 512


def linear(srgb) -> np.ndarray:
    """sRGB [0, 1] to linear light, by a power of 2.2, which is exact enough for paint."""
    return np.asarray(srgb, dtype=np.float32) ** 2.2


@cache
def _tile(slope: float) -> np.ndarray:
    """A tileable texture with mean 0 and standard deviation 1, whose spectrum falls as frequency^-slope."""
    f = np.hypot(fft.fftfreq(TILE)[:, None], fft.fftfreq(TILE)[None])
    f[0, 0] = 1.0
    f = np.maximum(f, 1.5 / TILE)
    white = fft.fft2(generator(0, "texture", slope).standard_normal((TILE, TILE)))
    tile = fft.ifft2(white * f**-slope).real
    return ((tile - tile.mean()) / tile.std()).astype(np.float32)


def texture(x, y, step: float, seed: int, slope: float = 1.0) -> np.ndarray:
    """Texture at (x, y) mm, one texel every ``step`` mm, bilinear. ``seed`` chooses the offset in the tile."""
    a = np.asarray(x, dtype=np.float32) * np.float32(1 / step) + np.float32(seed % 509)
    b = np.asarray(y, dtype=np.float32) * np.float32(1 / step) + np.float32(seed // 509 % 503)
    i, j = np.floor(a), np.floor(b)
    s, t = a - i, b - j
    i, j = i.astype(np.int32), j.astype(np.int32)
    tile = _tile(slope).ravel()
    left, right = i & (TILE - 1), (i + 1) & (TILE - 1)
    above, below = (j & (TILE - 1)) * TILE, ((j + 1) & (TILE - 1)) * TILE
    top = tile[above + left]
    top += (tile[above + right] - top) * s
    low = tile[below + left]
    low += (tile[below + right] - low) * s
    return top + (low - top) * t


@dataclass
class Paint:
    """Of N surface points: linear albedo (N, 3), gloss (N,), emitted light ``glow`` (N,), label (N,) uint8."""

    albedo: np.ndarray
    gloss: np.ndarray
    glow: np.ndarray
    label: np.ndarray

    def lay(self, at, colour, alpha, label: int | None = None, gloss: float | None = None) -> None:
        """Cover the points with the indices ``at`` with a linear colour of opacity ``alpha``.

        The label is set where the opacity is above 0.5.
        """
        alpha = np.asarray(alpha, dtype=np.float32)
        self.albedo[at] += (np.asarray(colour, np.float32) - self.albedo[at]) * alpha[..., None]
        if gloss is not None:
            self.gloss[at] += (gloss - self.gloss[at]) * alpha
        if label is not None:
            self.label[at[alpha > 0.5]] = label


def hair_colour(person: Person) -> np.ndarray:
    """Linear colour of the hair, mixed with grey."""
    grey = np.array([0.66, 0.65, 0.64]) * (0.85 + 0.2 * person.grey)
    return linear(person.hair * (1 - person.grey) + grey * person.grey)
