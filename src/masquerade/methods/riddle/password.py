"""The password z ~ N(0, I) of a key, for the generator's mapping network (Li et al. 2023)."""

from statistics import NormalDist

import numpy as np

from masquerade.core import keys

BYTES = 8  # bytes of the derived key for each number


def of(key: bytes, width: int) -> np.ndarray:
    """A key (any bytes) -> z, float32 (width,), standard normal. ``width`` is at most 1,020.

    HKDF (keys.expanded) derives 8 bytes for each number. Their first 53 bits k give the uniform number
    (k + 1/2) / 2^53, and z is the inverse normal distribution function of it. Keys that differ in one bit give
    unrelated passwords.
    """
    derived = np.frombuffer(keys.expand(key, BYTES * width, "riddle password"), dtype=">u8")
    inverse = NormalDist().inv_cdf
    return np.array([inverse(((int(word) >> 11) + 0.5) / 2**53) for word in derived], dtype=np.float32)
