"""Batches of a search in small steps, and a memory of what a network read off the last images."""

import hashlib
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np


def fill_batches(count: int, size: int) -> np.ndarray:
    """The rows 0 .. ``count`` - 1 in batches of ``size``, int (B, size); the last one is filled up with its last row.

    A search magnifies rounding, which depends on the size of the batch, but not on the other faces in it.
    """
    return np.arange(-(-count // size) * size).clip(max=count - 1).reshape(-1, size)


Read = TypeVar("Read")


class Remembered(Generic[Read]):
    """``read`` for images (N, 3, H, W), whose result for the last ``kept`` sets of images is kept.

    ``further`` arguments of a call follow from the images. Whoever gets a result must not change it.
    """

    def __init__(self, read: Callable[..., Read], kept: int = 1):
        self._read, self._kept = read, kept
        self._known: dict[bytes, Read] = {}

    def __call__(self, images: np.ndarray, *further: object) -> Read:
        digest = hashlib.sha256(images.tobytes()).digest()
        if digest not in self._known:
            while len(self._known) >= self._kept:  # first, so that memory holds no more results
                self._known.pop(next(iter(self._known)))
            self._known[digest] = self._read(images, *further)
        return self._known[digest]
