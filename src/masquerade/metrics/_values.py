"""What the metrics share: means with their denominators, distances and angles between embeddings."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from masquerade.errors import ProtocolError
from masquerade.metrics import Evidence, Value, stack

PAPERS_SIZE = 256
"""Side of the pictures on which the papers give distances in pixels."""


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


def unit(embeddings: np.ndarray) -> np.ndarray:
    """Embeddings (N, D) at length 1; NaN where one is missing."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of unit vectors, row by row: (N, D) twice -> (N,)."""
    return (first * second).sum(axis=1)


def to_papers_size(evidence: Evidence) -> float:
    """Pixels of a picture of 256 pixels for each of the pictures judged. Raises ProtocolError where it is not known."""
    if evidence.size is None:
        raise ProtocolError("A distance in pixels says nothing without the size of the pictures: give Evidence.size.")
    return PAPERS_SIZE / evidence.size


def between_versions(
    evidence: Evidence, judge: str, of: Callable[[np.ndarray], np.ndarray] = lambda cosines: cosines
) -> Value:
    """Mean over faces of the mean of ``of(cosine)`` over all pairs of a face's versions under different keys.

    Versions are the rows of ``derived`` with one ``source_id``, and the rows of the attempts `key` with it. ``over``
    counts the faces with two measured versions or more, ``of`` those that should have them; NaN where there are none.
    """
    column, frames = f"{judge}.embedding", [evidence.derived]
    if evidence.attempts is not None and column in evidence.attempts:  # fewer judges may have looked at attempts
        frames.append(evidence.attempts[evidence.attempts["attempt"] == "key"])
    versions = pd.concat([frame[["source_id", column]] for frame in frames], ignore_index=True)
    several = versions[versions.duplicated("source_id", keep=False)]
    if several.empty:
        return Value(float("nan"), 0, evidence.derived["source_id"].nunique(), note="no face has two versions")
    embeddings = unit(stack(several[column]))
    means, counts = [], []
    for rows in several.groupby("source_id", sort=False).indices.values():
        own = embeddings[rows][np.isfinite(embeddings[rows]).all(axis=1)]
        if len(own) < 2:
            means.append(np.nan)
            continue
        first, second = np.triu_indices(len(own), 1)
        means.append(of(cosine(own[first], own[second])).mean())
        counts.append(len(own))
    told = (
        f"{min(counts)}{f' to {max(counts)}' if max(counts) > min(counts) else ''} versions of each" if counts else ""
    )
    return mean(np.array(means), told)


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
