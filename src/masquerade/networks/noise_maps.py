"""The fixed noise of a style-based generator (Karras et al. 2019, section 2), drawn from a seed."""

import numpy as np
import torch
from torch import Tensor

from masquerade.core import seeding

NOISE_SEED = 0
"""Seed of the fixed noise of a generator that is trained here, and of one whose published file holds none."""


def noise_maps(layers: int, seed: int) -> list[Tensor]:
    """The noise of each of ``layers`` convolutions: standard normal (1, 1, S, S), S = 4, 8, 8, 16, 16, ... pixels."""

    def drawn(layer: int) -> np.ndarray:
        side = 2 ** ((layer + 5) // 2)
        return seeding.generator(seed, "noise map", layer).standard_normal((1, 1, side, side), dtype=np.float32)

    return [torch.from_numpy(drawn(layer)) for layer in range(layers)]
