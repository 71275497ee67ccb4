"""Cosine between the anonymized faces of different people under one key."""

import numpy as np

from masquerade.core.measurements import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, unit


class PeopleSimilarity(Metric):
    """Mean of cos(e(X'_i), e(X'_j)) over all pairs of anonymized faces of different people under one key, in [-1, 1].

    Lower is better: a high value means that different people look alike when they are anonymized. e: the judge's
    embedding at unit length, (N, D). Pictures under one key are the attempts `key` with one ``number``. Where there are
    none, each anonymized picture has its own key or needs none, and the pairs are those of all pictures. Faces without
    a known identity ('') are in no pair. The mean is computed from sums of e, which is exact:
    (|sum e|^2 - sum over people p of |sum_p e|^2) / (N^2 - sum over p of n_p^2).
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (first term).

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces = {"net.embedding": [[1, 0], [0, 1], [1, 0]]}  # cosines of the three pairs: 0, 0, 1
    >>> values(PeopleSimilarity, evidence(faces, faces))
    {'net': 0.3333}
    """

    title = "similarity between people"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: _judged(evidence, f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}


def _judged(evidence: Evidence, column: str) -> Value:
    faces = evidence.derived
    if evidence.attempts is not None and column in evidence.attempts:  # attempts may be measured by fewer judges
        under_one_key = evidence.attempts[evidence.attempts["attempt"] == "key"]
        faces = faces if under_one_key.empty else under_one_key
    names, embeddings = faces["identity"].to_numpy(), unit(stack(faces[column]))
    keys = faces["number"].to_numpy() if "number" in faces else np.zeros(len(faces))
    measured = np.isfinite(embeddings).all(axis=1) & (names != "")
    total, pairs, draws, pairs_of_draws = 0.0, 0, np.zeros(evidence.draws), np.zeros(evidence.draws)
    for key in np.unique(keys[measured]):
        rows = measured & (keys == key)
        people, positions, counts = np.unique(names[rows], return_inverse=True, return_counts=True)
        sums = np.zeros((len(people), embeddings.shape[1]))
        np.add.at(sums, positions, embeddings[rows])
        total += (sums.sum(axis=0) ** 2).sum() - (sums**2).sum()
        pairs += int(counts.sum() ** 2 - (counts**2).sum())  # each pair counts twice: (i, j) and (j, i)
        times = evidence.weights_of(people)
        draws += ((times @ sums) ** 2).sum(axis=1) - times**2 @ (sums**2).sum(axis=1)
        pairs_of_draws += (times @ counts) ** 2 - times**2 @ counts**2
    if not pairs:
        return Value(float("nan"), 0, len(names), note="no two people could be measured")
    draws = np.divide(draws, pairs_of_draws, out=np.full_like(draws, np.nan), where=pairs_of_draws > 0)
    note = f"{pairs // 2} pairs of different people"
    return Value(float(total / pairs), int(measured.sum()), len(names), note=note, draws=draws)
