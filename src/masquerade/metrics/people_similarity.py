"""How alike the anonymized faces of different people are under one key."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import judges_with, unit


class PeopleSimilarity(Metric):
    """Mean of cos(e(X'_i), e(X'_j)) over all pairs of anonymized faces of different people under one key, in [-1, 1].

    All anonymized pictures of a cell have one key; of attempts with several, those of one ``number``. High: the method
    makes everybody look like the same stranger. Faces of nobody known ('') are in no pair. From the sums of unit
    vectors e: (|sum e|^2 - sum over people p of |sum_p e|^2) / (N^2 - sum over p of n_p^2), exactly that mean.
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (first term).
    """

    title = "similarity between people"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        derived = evidence.derived
        names = derived["identity"].to_numpy()
        keys = derived["number"].to_numpy() if "number" in derived else np.zeros(len(derived))
        return {
            judge: _judged(unit(stack(derived[f"{judge}.embedding"])), names, keys)
            for judge in judges_with(evidence, "embedding")
        }


def _judged(embeddings: np.ndarray, names: np.ndarray, keys: np.ndarray) -> Value:
    seen = np.isfinite(embeddings).all(axis=1) & (names != "")
    total, pairs = 0.0, 0
    for key in np.unique(keys[seen]):
        rows = seen & (keys == key)
        people, places, counts = np.unique(names[rows], return_inverse=True, return_counts=True)
        sums = np.zeros((len(people), embeddings.shape[1]))
        np.add.at(sums, places, embeddings[rows])
        total += (sums.sum(axis=0) ** 2).sum() - (sums**2).sum()
        pairs += int(counts.sum() ** 2 - (counts**2).sum())  # ordered
    if not pairs:
        return Value(float("nan"), 0, len(names), note="no two people could be measured")
    return Value(float(total / pairs), int(seen.sum()), len(names), note=f"{pairs // 2} pairs of different people")
