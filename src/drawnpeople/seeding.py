"""Random numbers that depend on a seed and a purpose, and not on the order in which they are drawn."""

import hashlib

import numpy as np


def generator(seed: int, *parts: object) -> np.random.Generator:
    """A NumPy generator for the purpose ``parts``, e.g. ``generator(0, "sheet", number)``."""
    text = "\x1f".join([str(seed), *map(str, parts)])
    derived = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return np.random.Generator(np.random.PCG64(derived))
