"""What the metrics share: means with their denominators, and distances between embeddings."""

from collections.abc import Iterable

import numpy as np

from masquerade.metrics import Evidence, Value, stack


def mean(values: np.ndarray, note: str = "") -> Value:
    """The mean over the finite ``values`` (N,), of N; its spread is their standard deviation."""
    counted = values[np.isfinite(values)]
    if not counted.size:
        return Value(float("nan"), 0, len(values), note=note or "no face could be measured")
    spread = float(counted.std(ddof=1)) if counted.size > 1 else None
    return Value(
        float(counted.mean()), int(counted.size), len(values), spread, "faces" if spread is not None else "", note
    )


def judges_with(evidence: Evidence, quantity: str) -> list[str]:
    """The judges that measured a quantity on the derived set."""
    return [judge for judge in evidence.judges if f"{judge}.{quantity}" in evidence.derived]


def distances(evidence: Evidence, judge: str) -> np.ndarray:
    """Euclidean distance of the embeddings of each original and its derived face, (N,); NaN where one is missing."""
    original, derived = evidence.pair(f"{judge}.embedding")
    return np.linalg.norm(original - derived, axis=1)


def impostor_distances(evidence: Evidence, judge: str) -> np.ndarray:
    """Distances of all pairs of different people among the calibration pictures, ascending."""
    embeddings = stack(evidence.calibration[f"{judge}.embedding"])
    names = evidence.calibration["identity"].to_numpy()
    seen = np.isfinite(embeddings).all(axis=1)
    return np.sort(between(embeddings[seen], names[seen]))


def between(embeddings: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Distances of all pairs of pictures (N, D) of different people; a picture of nobody known ('') is in no pair."""
    from scipy.spatial.distance import pdist

    embeddings, names = embeddings[names != ""], names[names != ""]
    first, second = np.triu_indices(len(names), 1)
    return pdist(embeddings)[names[first] != names[second]] if len(names) > 1 else np.empty(0)


def threshold_at(far: float, impostors: np.ndarray) -> float:
    """The largest distance below which at most a share ``far`` of the ascending ``impostors`` lies.

    Two faces are taken for one person where their distance is below it. NaN where ``far`` needs more ``impostors``.
    """
    accepted = int(np.floor(far * len(impostors)))
    return float(impostors[accepted]) if accepted >= 1 else float("nan")


def too_few(far: float, pairs: int, what: Iterable[str] = ("calibration",)) -> str:
    """Why there is no threshold at ``far``."""
    return f"{pairs} impostor pairs of {' '.join(what)} cannot resolve a false-accept rate of {far:g}"
