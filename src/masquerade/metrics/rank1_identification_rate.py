"""How often an attacker who knows other pictures of everybody finds the right person for an anonymized face."""

import math

import numpy as np

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import judges_with

AT_ONCE = 512
"""Anonymized faces whose distances to the whole gallery are in memory at a time."""


class Rank1IdentificationRate(Metric):
    """Share of anonymized faces whose nearest picture in the gallery shows the same person, in [0, 1].

    Gallery: the originals of the whole set but the face's own source, so that what counts is the person and not the
    pose, light or background of one picture. Asked are the faces of people with another picture in the gallery; people
    with one picture stay in it as distractors. The note gives the chance level: the mean share of the gallery that
    shows the right person. Ours: an attacker stronger than verification.
    Reference: Phillips et al. 2011, Evaluation Methods in Face Recognition (closed-set identification, rank 1).
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
    kept = np.flatnonzero(np.isfinite(gallery).all(axis=1) & (names != ""))  # nobody known may be anybody
    asked = np.flatnonzero(several & np.isfinite(derived).all(axis=1))
    right, chances = [], []
    for start in range(0, len(asked), AT_ONCE):
        rows = asked[start : start + AT_ONCE]
        others = rows[:, None] != kept[None, :]
        same = (names[rows][:, None] == names[kept][None, :]) & others
        apart = np.where(others, cdist(derived[rows], gallery[kept], "sqeuclidean"), np.inf)
        known = same.any(axis=1)  # whose other pictures could not be measured cannot be found
        nearest = apart[known].argmin(axis=1)
        right += same[known][np.arange(known.sum()), nearest].tolist()
        chances += (same[known].sum(axis=1) / others[known].sum(axis=1)).tolist()
    if not right:
        why = "no face could be measured" if several.any() else "nobody has two pictures"
        return Value(math.nan, 0, int(several.sum()), note=why)
    note = f"chance {np.mean(chances):.3f}, nearest of {len(kept)} originals without its own"
    return Value(float(np.mean(right)), len(right), int(several.sum()), note=note)
