"""Passwords of FIT: 16 bits as +-0.5 (the published code), their inverses, and their draws.

The inverse of a password p has every bit inverted: -p. The network recovers a face with it.
"""

import numpy as np

BITS = 16  # Gu et al. 2020, section 4
GROUP = 4  # bits that the password classifier predicts as one class: the published code
COUNT = 2**BITS


def encoded(numbers: np.ndarray | int) -> np.ndarray:
    """Numbers in 0 .. 2^16 - 1, any shape (...,) -> their bits, most significant first, float32 (..., 16) of +-0.5."""
    bits = np.asarray(numbers)[..., None] >> np.arange(BITS - 1, -1, -1) & 1
    return bits.astype(np.float32) - np.float32(0.5)


def of_key(key: bytes) -> np.ndarray:
    """The password of a 2-byte key: float32 (16,) of +-0.5."""
    return encoded(int.from_bytes(key, "big"))


def inverse(numbers: np.ndarray) -> np.ndarray:
    """The numbers with every bit inverted: encoded(inverse(n)) = -encoded(n)."""
    return COUNT - 1 - numbers


def classes(numbers: np.ndarray) -> np.ndarray:
    """The targets of the classifier: each group of bits as a number in 0 .. 15, int64 (..., 4), first group first."""
    shifts = np.arange(BITS - GROUP, -1, -GROUP)
    return (np.asarray(numbers)[..., None] >> shifts & (2**GROUP - 1)).astype(np.int64)


def drawn(draw: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Passwords for ``count`` faces by their purpose, int64 (count,) each.

    ``anonymized`` and ``other``: two different passwords that hide. ``recovered``: the inverse of the first. ``wrong``
    and ``wrong_too``: two different passwords, neither of them that inverse.
    """
    first = draw.integers(COUNT, size=count)
    right = inverse(first)
    # An offset of 1 .. COUNT - 1 never gives the same password, and two different offsets give different passwords.
    other, wrong = draw.integers(1, COUNT, size=(2, count))
    wrong_too = 1 + (wrong - 1 + draw.integers(1, COUNT - 1, size=count)) % (COUNT - 1)
    return {
        "anonymized": first,
        "other": (first + other) % COUNT,
        "recovered": right,
        "wrong": (right + wrong) % COUNT,
        "wrong_too": (right + wrong_too) % COUNT,
    }
