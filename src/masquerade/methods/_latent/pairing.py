"""The fake that is nearest to a real face (Barattin et al. 2023, section 3.2, Eq. 1)."""

import numpy as np


def nearest(real: np.ndarray, fakes: np.ndarray) -> np.ndarray:
    """The row of ``fakes`` (M, D) that is nearest to each of ``real`` (N, D) in Euclidean distance, int (N,). Exact."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="euclidean").fit(fakes)
    return search.kneighbors(real, return_distance=False)[:, 0]
