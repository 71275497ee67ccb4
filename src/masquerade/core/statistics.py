"""Statistics of embeddings and features that several rooms use."""

from typing import cast

import numpy as np


def between(embeddings: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Euclidean distances, shape (P,), of all P pairs of pictures that show different people.

    ``embeddings``: (N, D). ``names``: (N,), the person in each picture; a picture with the name '' is in no pair.
    """
    from scipy.spatial.distance import pdist

    embeddings, names = embeddings[names != ""], names[names != ""]
    first, second = np.triu_indices(len(names), 1)
    return pdist(embeddings)[names[first] != names[second]] if len(names) > 1 else np.empty(0)


def threshold_at(far: float, impostors: np.ndarray) -> float:
    """The largest distance threshold with a false-accept rate of at most ``far``.

    Two faces count as one person if their distance is below the threshold. ``impostors``: (P,), the distances of pairs
    of different people in ascending order. Returns NaN if P is too small for ``far``.
    """
    accepted = int(np.floor(far * len(impostors)))
    return float(impostors[accepted]) if accepted >= 1 else float("nan")


def frechet(first: np.ndarray, second: np.ndarray) -> float:
    """The Frechet distance of two sets of features (N, D) and (M, D), modelled as Gaussians; 0 or more.

    |m1 - m2|^2 + tr C1 + tr C2 - 2 tr (C1 C2)^(1/2), with means m and covariances C (Heusel et al. 2017, Eq. 6).
    tr (C1 C2)^(1/2) is the sum of the singular values of X Y^T / sqrt((N - 1)(M - 1)) with the centred sets X and Y,
    which is exact for singular covariances too. If N > D, the factor R of X = Q R replaces X: Q changes no singular
    value.
    """
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    n, m = len(x) - 1, len(y) - 1
    left, right = (cast("np.ndarray", np.linalg.qr(z, mode="r")) if len(z) > z.shape[1] else z for z in (x, y))
    crossed = np.linalg.svd(left @ right.T, compute_uv=False).sum() / np.sqrt(n * m)
    spreads = (x**2).sum() / n + (y**2).sum() / m
    shift = first.mean(axis=0) - second.mean(axis=0)
    return float(max(0.0, shift @ shift + spreads - 2.0 * crossed))
