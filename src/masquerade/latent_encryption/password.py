"""From a key to the password z ~ N(0, I) that the generator's mapping network takes (Li et al. 2023)."""

from statistics import NormalDist

import numpy as np

from masquerade import keys

BYTES = 8  # of the derived key for each number


def of(key: bytes, width: int) -> np.ndarray:
    """A key, any bytes -> z, float32 (width,), standard normal; ``width`` at most 1,020.

    HKDF (keys.expanded) derives 8 bytes a number; their first 53 bits k are the uniform (k + 1/2) / 2^53, and z is its
    inverse normal distribution function. Keys that differ in one bit give unrelated passwords.
    """
    derived = np.frombuffer(keys.expanded(key, BYTES * width, "riddle password"), dtype=">u8")
    inverse = NormalDist().inv_cdf
    return np.array([inverse(((int(word) >> 11) + 0.5) / 2**53) for word in derived], dtype=np.float32)
