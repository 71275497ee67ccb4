"""Batches of equal size, for methods that search each face's result in small steps."""

import numpy as np


def full_batches(count: int, size: int) -> np.ndarray:
    """The rows 0 .. ``count`` - 1 in batches of ``size``, int (B, size); the last one is filled up with its last row.

    A search magnifies rounding, which depends on the size of the batch, but not on the other faces in it.
    """
    return np.arange(-(-count // size) * size).clip(max=count - 1).reshape(-1, size)
