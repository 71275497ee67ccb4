"""What a network read off the last pictures, for methods on whose pictures many keys are tried."""

import hashlib
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

Read = TypeVar("Read")


class Remembered(Generic[Read]):
    """``read`` for pictures (N, 3, H, W), whose result for the last ``kept`` sets of pictures is kept.

    Whoever gets a result must not change it.
    """

    def __init__(self, read: Callable[[np.ndarray], Read], kept: int = 1):
        self._read, self._kept = read, kept
        self._known: dict[bytes, Read] = {}

    def __call__(self, images: np.ndarray) -> Read:
        digest = hashlib.sha256(images.tobytes()).digest()
        if digest not in self._known:
            while len(self._known) >= self._kept:  # first, so that memory holds no more results
                self._known.pop(next(iter(self._known)))
            self._known[digest] = self._read(images)
        return self._known[digest]
