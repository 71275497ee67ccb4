"""HiFD, a composite of privacy, quality and utility, as published and with the strongest attacker in it."""

import math
from collections.abc import Mapping

import numpy as np

from masquerade.core.face_tables import stack
from masquerade.core.statistics import compute_weighted_means
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import count_first, describe_chance, measure_attackers
from masquerade.metrics._values import judges_with

NEEDED = ("age", "male", "ethnicity", "expression", "mesh", "gaze", "perceptual")
"""The quantities that the composite needs, beside the embeddings; of each, the first judge that measures it."""
EYES = ((33, 133), (362, 263))
"""The corners of both eyes among the points of the mesh: their middles are as far apart as the eyes."""
COMPONENTS = ("P", "Q", "U1", "U2")
PROFILE = "balanced"
"""The name of equal weights in the package."""


class Hifd(Metric):
    """Weighted harmonic mean of P, Q, U1 and U2, in [0, 1]; higher is better.

    P: mean over the recognizers of (1 - cosine) / 2. Q: 1 - the perceptual distance, which is LPIPS where that is
    measured. U1: mean agreement of age, gender, apparent ethnicity, expression and landmarks. U2: agreement of the
    gaze. Parts: ``balanced``, with the authors' equal weights; and ``balanced.attacked``, where P is 1 minus the rank-1
    rate of the strongest attacker.

    The functions are those of the package but for Q, from which NIQE is left out (ours): no package here has it. Heart
    rate and micro expressions need videos; the package drops the weights of components that are missing.
    Reference: Wei et al. 2026 (UtilFace; package hifd 0.1.0), composite and constants.

    >>> from masquerade.metrics._examples import evidence, values
    >>> kept = {"a.male": [0.9], "b.ethnicity": [[1, 0]], "c.expression": [[1, 0]], "d.gaze": [[0, 0]]}
    >>> kept |= {"d.mesh": [range(936)], "e.perceptual": [0.2]}
    >>> before, after = {"a.age": [30], "net.embedding": [[1, 0]]}, {"a.age": [40], "net.embedding": [[0, 1]]}
    >>> values(Hifd, evidence(kept | before, kept | after))  # P 0.5, Q 0.8, U1 0.98, U2 1
    {'balanced': 0.759}
    """

    name = "hifd"
    title = "HiFD"
    direction = "higher"
    unit = "weighted harmonic mean"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        columns = {quantity: judges_with(evidence, quantity)[:1] for quantity in NEEDED}
        recognizers = judges_with(evidence, "embedding")
        if not recognizers or not all(columns.values()):
            return {}
        agreements = _compare_faces(
            evidence, {name: f"{judge}.{name}" for name, [judge] in columns.items()}, recognizers
        )
        measured = np.isfinite(np.stack(list(agreements.values()))).all(axis=0)
        over, of = int(np.sum(measured)), len(evidence.derived)
        if not over:
            return {PROFILE: Value(math.nan, 0, of, note="no face could be measured")}
        masked = {name: np.where(measured, values, np.nan) for name, values in agreements.items()}
        means = {name: float(np.nanmean(values)) for name, values in masked.items()}
        draws = {name: compute_weighted_means(values, evidence.weights) for name, values in masked.items()}
        values = {PROFILE: _compose(means, draws, over, of)}
        attacks = measure_attackers(evidence, count_first(1), lambda attack: describe_chance(attack, 1))
        strongest = attacks.get("strongest")
        if strongest is not None and strongest.over:
            rate = strongest.draws if strongest.draws is not None else np.full(evidence.draws, strongest.value)
            attacked = means | {"P": 1 - strongest.value}, draws | {"P": 1 - rate}
            values[f"{PROFILE}.attacked"] = _compose(*attacked, over, of)
        return values


def _compose(means: Mapping[str, float], draws: Mapping[str, np.ndarray], over: int, of: int) -> Value:
    """The composite of the means, and in each bootstrap sample."""
    import hifd

    def compose(privacy: float, quality: float, first: float, second: float) -> float:
        return hifd.composite(privacy, quality, first, second, None, hifd.DEFAULT_PROFILES[PROFILE])

    drawn = [compose(*sample) for sample in zip(*(draws[name] for name in COMPONENTS), strict=True)]
    note = ", ".join(f"{name} {means[name]:.2f}" for name in COMPONENTS)
    return Value(compose(*(means[name] for name in COMPONENTS)), over, of, note=note, draws=np.array(drawn))


def _compare_faces(evidence: Evidence, columns: Mapping[str, str], recognizers: list[str]) -> dict[str, np.ndarray]:
    """P, Q, U1 and U2 of each face, (N,); NaN where something is missing."""
    import hifd

    (age, aged), (male, altered) = evidence.pair(columns["age"]), evidence.pair(columns["male"])
    genders = [np.stack([share, 1 - share], axis=1) for share in (male, altered)]
    utility = hifd.batch_U1(
        hifd.batch_score_age(age, aged),
        hifd.batch_score_categorical(*genders),
        hifd.batch_score_categorical(*evidence.pair(columns["ethnicity"])),
        hifd.batch_score_categorical(*evidence.pair(columns["expression"])),
        _compare_landmarks(*evidence.pair(columns["mesh"])),
    )
    gazes = zip(*(_point_out(angles) for angles in evidence.pair(columns["gaze"])), strict=True)
    embeddings = {judge: hifd.batch_privacy_score(*evidence.pair(f"{judge}.embedding")) for judge in recognizers}
    return {
        "P": hifd.privacy_ensemble(embeddings),
        "Q": 1 - np.clip(stack(evidence.derived[columns["perceptual"]]), 0, 1),
        "U1": utility,
        "U2": np.array([hifd.score_gaze(*pair) if np.isfinite(pair).all() else math.nan for pair in gazes]),
    }


def _compare_landmarks(original: np.ndarray, derived: np.ndarray) -> np.ndarray:
    """The agreement of the points of a mesh, (N, 2 P) each: (N,)."""
    import hifd

    scores = []
    for first, second in zip(original, derived, strict=True):
        points, moved = first.reshape(-1, 2), second.reshape(-1, 2)
        eyes = [points[list(corners)].mean(axis=0) for corners in EYES]
        whole = np.isfinite(points).all() and np.isfinite(moved).all()
        scores.append(hifd.score_landmark(points, moved, *eyes) if whole else math.nan)
    return np.array(scores)


def _point_out(angles: np.ndarray) -> np.ndarray:
    """Directions (N, 3) from the gaze (N, 2), right and up in degrees."""
    right, up = np.radians(angles).T
    return np.stack([np.sin(right) * np.cos(up), np.sin(up), np.cos(right) * np.cos(up)], axis=1)
