"""How probable it is that a stranger is nearer than a distance, also where no stranger was seen."""

from functools import cached_property

import numpy as np

FEWEST = 8
"""The fewest distances through which a line is drawn; with fewer, the share of the strangers counts alone."""


class Tail:
    """The chances of N faces, from the distances (N, M) to strangers and those to their ``own`` people, (N,).

    Above the smallest share ``tail`` of a row, the chance is the share of the strangers who are nearer. Below, it
    follows the line through the normal deviates of that share: distances between strangers are nearly normal, which is
    why error rates of recognizers are drawn on this scale (Martin et al. 1997, The DET Curve in Assessment of Detection
    Task Performance).
    """

    def __init__(self, strangers: np.ndarray, own: np.ndarray, tail: float):
        self._own, self._count = own, strangers.shape[1]
        self._nearer = (strangers < own[:, None]).astype(np.float32)
        self._few = int(tail * self._count)
        self.is_fitted = self._few >= FEWEST
        if self.is_fitted:
            kept = min(2 * self._few + 50, self._count)  # a sample has its nearest few among these
            places = np.argpartition(strangers, kept - 1, axis=1)[:, :kept]
            nearest = np.take_along_axis(strangers, places, axis=1)
            order = np.argsort(nearest, axis=1)
            self._places = np.take_along_axis(places, order, axis=1)
            self._nearest = np.take_along_axis(nearest, order, axis=1)

    @cached_property
    def _deviates(self) -> np.ndarray:
        """The sum of the normal deviates of the first 0, 1, ... of the nearest few, (few + 1,)."""
        from scipy.special import ndtri

        return np.concatenate([[0.0], np.cumsum(ndtri((np.arange(self._few) + 0.5) / self._count))])

    def estimate(self, counts: np.ndarray | None = None) -> np.ndarray:
        """The chance of each face, (N,). ``counts``: how often each stranger is in a sample of M, (M,); None: once."""
        from scipy.special import ndtr

        counts = np.ones(self._count) if counts is None else counts
        nearer = self._nearer @ counts.astype(np.float32) / self._count
        if not self.is_fitted:
            return nearer
        copies = counts[self._places]
        last = np.minimum(np.cumsum(copies, axis=1), self._few).astype(np.int64)  # places among the nearest few
        first = np.concatenate([np.zeros((len(last), 1), np.int64), last[:, :-1]], axis=1)
        copies, deviates = last - first, self._deviates[last] - self._deviates[first]
        middle = (copies * self._nearest).sum(axis=1, keepdims=True) / self._few
        apart = self._nearest - middle
        spread = np.maximum((copies * apart**2).sum(axis=1), 1e-12)
        slope = (apart * deviates).sum(axis=1) / spread
        line = ndtr(self._deviates[-1] / self._few + slope * (self._own - middle[:, 0]))
        limit = np.where(copies > 0, self._nearest, -np.inf).max(axis=1)
        return np.where(self._own >= limit, nearer, line)
