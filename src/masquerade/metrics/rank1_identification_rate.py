"""Share of anonymized faces whose person is found by the nearest picture of a gallery."""

import math

import numpy as np

from masquerade.core.measurements import stack
from masquerade.core.statistics import weighted_means
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with

AT_ONCE = 512
"""Anonymized faces that are compared with the whole gallery at a time."""


class Rank1IdentificationRate(Metric):
    """Mean over faces of [the nearest picture in the gallery shows the same person], in [0, 1]; lower is better.

    The nearest picture has the smallest Euclidean distance of embeddings, (N, D). The gallery holds the originals of
    the whole set without the face's own source, so that the person counts and not the pose, light or background of one
    picture. Faces of people with another picture in the gallery are probes; people with one picture stay in the gallery
    as distractors. The note gives the chance level: the mean share of the gallery that shows the right person. The
    metric is ours: its attacker is stronger than verification.
    Reference: Phillips et al. 2011, Evaluation Methods in Face Recognition (closed-set identification, rank 1).

    >>> from masquerade.metrics._examples import evidence, values
    >>> originals = {"identity": ["a", "a", "b", "b"], "net.embedding": [[0], [1], [5], [6]]}
    >>> anonymized = {"net.embedding": [[0], [1], [0], [1]]}  # both faces of b are nearest to a
    >>> values(Rank1IdentificationRate, evidence(originals, anonymized))
    {'net': 0.5}
    """

    title = "rank-1 identification rate"
    direction = "lower"
    unit = "share of faces of people with several pictures"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: _judged(evidence, f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}


def _judged(evidence: Evidence, column: str) -> Value:
    from scipy.spatial.distance import cdist

    derived, gallery = stack(evidence.derived[column]), stack(evidence.original[column])
    names = evidence.original["identity"].to_numpy()
    people, counts = np.unique(names, return_counts=True)
    several = np.isin(names, people[(people != "") & (counts > 1)])
    kept = np.flatnonzero(
        np.isfinite(gallery).all(axis=1) & (names != "")
    )  # a face without a known identity is no match for any
    probes = np.flatnonzero(several & np.isfinite(derived).all(axis=1))
    right, chances, people = [], [], []
    for start in range(0, len(probes), AT_ONCE):
        rows = probes[start : start + AT_ONCE]
        others = rows[:, None] != kept[None, :]
        same = (names[rows][:, None] == names[kept][None, :]) & others
        distances = np.where(others, cdist(derived[rows], gallery[kept], "sqeuclidean"), np.inf)
        known = same.any(axis=1)  # False if no other picture of the person was measured
        nearest = distances[known].argmin(axis=1)
        people += names[rows[known]].tolist()
        right += same[known][np.arange(known.sum()), nearest].tolist()
        chances += (same[known].sum(axis=1) / others[known].sum(axis=1)).tolist()
    if not right:
        reason = "no face could be measured" if several.any() else "nobody has two pictures"
        return Value(math.nan, 0, int(several.sum()), note=reason)
    note = f"chance {np.mean(chances):.3f}, nearest of {len(kept)} originals without its own"
    draws = weighted_means(np.array(right, dtype=float), evidence.weights_of(np.array(people)))
    return Value(float(np.mean(right)), len(right), int(several.sum()), note=note, draws=draws)
