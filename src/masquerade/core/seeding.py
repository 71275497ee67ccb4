"""Random numbers that depend on a seed and a purpose, and not on the order or the batch in which they are drawn."""

import hashlib

import numpy as np


def derive(seed: int, *parts: object) -> int:
    """A 63-bit seed for the purpose ``parts``, e.g. ``derive(0, "noise", picture_id)``."""
    text = "\x1f".join([str(seed), *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """A NumPy generator with the seed of `derive`."""
    return np.random.Generator(np.random.PCG64(derive(seed, *parts)))
