"""How probable it is that a stranger is nearer than a distance, also where no stranger was seen."""

import numpy as np

FEWEST = 8
"""The fewest distances through which a line is drawn; with fewer, the share of the strangers counts alone."""


def estimate_chances(strangers: np.ndarray, own: np.ndarray, tail: float) -> np.ndarray:
    """The probability that a stranger is nearer than ``own`` (N,), from distances to strangers (N, M): (N,).

    Above the smallest share ``tail`` of a row it is the share of the strangers who are nearer. Below, it follows the
    line through the normal deviates of that share: distances between strangers are nearly normal, which is why error
    rates of recognizers are drawn on this scale (Martin et al. 1997, The DET Curve in Assessment of Detection Task
    Performance).
    """
    from scipy.special import ndtr, ndtri

    count = strangers.shape[1]
    few = int(tail * count)
    nearer = (strangers < own[:, None]).mean(axis=1)
    if few < FEWEST:
        return nearer
    nearest = np.sort(np.partition(strangers, few, axis=1)[:, :few], axis=1)
    deviates = ndtri((np.arange(few) + 0.5) / count)
    middle = nearest.mean(axis=1, keepdims=True)
    spread = np.maximum(((nearest - middle) ** 2).sum(axis=1), 1e-12)
    slope = ((nearest - middle) * (deviates - deviates.mean())).sum(axis=1) / spread
    line = ndtr(deviates.mean() + slope * (own - middle[:, 0]))
    return np.where(own >= nearest[:, -1], nearer, line)
