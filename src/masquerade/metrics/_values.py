"""Functions that several metrics share: means with their denominators, distances and angles between embeddings."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from masquerade.core.errors import ProtocolError
from masquerade.core.face_tables import stack
from masquerade.core.statistics import compute_weighted_means, count_people, decode
from masquerade.core.thresholds import ThresholdEstimate, estimate_threshold, pair_strangers
from masquerade.metrics import Evidence, Value

PAPERS_SIZE = 256
"""Side of the images on which the papers give distances in pixels."""


def mean(values: np.ndarray, weights: np.ndarray, note: str = "") -> Value:
    """The mean over the finite ``values`` (N,), of N. Its spread is their standard deviation.

    ``weights``: how often each value counts in each bootstrap sample, (draws, N): `Evidence.weights`.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Value(float("nan"), 0, len(values), note=note or "no face could be measured")
    spread = float(finite.std(ddof=1)) if finite.size > 1 else None
    return Value(
        float(finite.mean()), int(finite.size), len(values), spread, "faces" if spread is not None else "", note,
        compute_weighted_means(values, weights),
    )  # fmt: skip


def share(values: np.ndarray, weights: np.ndarray, note: str = "") -> Value:
    """The mean over the finite ``values`` (N,) of 0 and 1, of N. A share has no spread of its own."""
    average, finite = mean(values, weights), np.isfinite(values)
    return replace(
        average, spread=None, spread_of="", note=note if average.over else average.note,
        people=count_people(weights[:, finite]),
        found=None if finite.all() else compute_weighted_means(finite.astype(np.float64), weights),
    )  # fmt: skip


def fewest_people(parts: Sequence[Value]) -> int | None:
    """The people behind a mean of shares: those of its smallest part, so that its interval is not too narrow."""
    return min((part.people for part in parts if part.people is not None), default=None)


def average_pixels(evidence: Evidence, quantity: str, scale: float = 1.0) -> dict[str, Value]:
    """The mean over faces of what the judge ``pixels`` measured of each, divided by ``scale``; {} if it did not."""
    column = f"pixels.{quantity}"
    if column not in evidence.derived:
        return {}
    values = stack(evidence.derived[column]) / scale
    note = "infinite: the images are identical" if np.isinf(values).any() else ""
    return {"": mean(values, evidence.weights, note)}


def read_attack_value(plain: Mapping[str, Any], note: str, missing: str) -> Value:
    """A number that an attack found, from its JSON. ``missing``: the note of one that is not a number."""
    if plain["value"] is None:
        return Value(float("nan"), plain["over"], plain["of"], note=missing)
    return Value(
        plain["value"], plain["over"], plain["of"], note=note, draws=decode(plain["draws"]), people=plain["people"]
    )


def center(draws: np.ndarray, value: float) -> np.ndarray:
    """The draws moved so that their mean is ``value``.

    The means of two sets are farther apart in the samples than in the sets, so a Frechet distance is larger there. The
    deviation and the skewness stay, so that an interval (`compute_interval`) is corrected for the skewness alone.
    """
    return draws - np.nanmean(draws) + value if np.isfinite(draws).any() else draws


def mean_of_draws(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The mean, sample by sample, of the parts (draws,) that have a value in that sample; NaN if none has."""
    values, counts = np.nan_to_num(parts).sum(axis=0), np.isfinite(parts).sum(axis=0)
    return np.divide(values, counts, out=np.full(len(values), np.nan), where=counts > 0)


def judges_with(evidence: Evidence, quantity: str) -> list[str]:
    """The judges that measured a quantity on the derived set."""
    return [judge for judge in evidence.judges if f"{judge}.{quantity}" in evidence.derived]


def average_faces(
    evidence: Evidence,
    quantity: str,
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray],
    average: Callable[[np.ndarray, np.ndarray], Value] = mean,
) -> dict[str, Value]:
    """For each judge that measured ``quantity``: the average over faces of ``measure(original, derived)``, (N,)."""
    return {
        judge: average(measure(*evidence.pair(f"{judge}.{quantity}")), evidence.weights)
        for judge in judges_with(evidence, quantity)
    }


def distances(original: np.ndarray, derived: np.ndarray) -> np.ndarray:
    """Euclidean distance of each original embedding and its derived one, (N, D) each: (N,). NaN if one is missing."""
    return np.linalg.norm(original - derived, axis=1)


def unit(embeddings: np.ndarray) -> np.ndarray:
    """Embeddings (N, D) scaled to length 1. A missing one stays NaN."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of two sets of unit vectors, row by row: (N, D) and (N, D) -> (N,)."""
    return (first * second).sum(axis=1)


def to_papers_size(evidence: Evidence) -> float:
    """The factor from pixels of the judged images to pixels of a 256-pixel image.

    Raises ProtocolError if the size of the judged images is not known.
    """
    if evidence.size is None:
        raise ProtocolError(
            "A distance in pixels has no meaning without the size of the images. Allowed is any size above 0. "
            "Set Evidence.size."
        )
    return PAPERS_SIZE / evidence.size


def between_versions(
    evidence: Evidence, judge: str, measure: Callable[[np.ndarray], np.ndarray] = lambda cosines: cosines
) -> Value:
    """Mean over faces of the mean of ``measure(cosines)`` over all pairs of a face's versions.

    The versions of a face are its images under different keys or random numbers: the rows of ``derived`` with one
    ``source_id``, and the rows of the attempts `key` and `view.draw.<n>` with the same one. ``over`` counts the faces
    with two measured versions or more, ``of`` all faces that should have them. The value is NaN if no face has two.
    """
    column, frames = f"{judge}.embedding", [evidence.derived]
    if evidence.recoveries is not None and column in evidence.recoveries:  # attempts may be measured by fewer judges
        names = evidence.recoveries["attempt"]
        frames.append(evidence.recoveries[(names == "key") | names.str.startswith("view.draw.")])
    versions = pd.concat([frame[["source_id", column]] for frame in frames], ignore_index=True)
    several = versions[versions.duplicated("source_id", keep=False)]
    if several.empty:
        return Value(float("nan"), 0, evidence.derived["source_id"].nunique(), note="no face has two versions")
    embeddings = unit(stack(several[column]))
    person_of = dict(zip(evidence.original["id"], evidence.people, strict=True))
    faces = several.groupby("source_id", sort=False).indices
    means, counts = [], []
    for rows in faces.values():
        measured = embeddings[rows][np.isfinite(embeddings[rows]).all(axis=1)]
        if len(measured) < 2:
            means.append(np.nan)
            continue
        first, second = np.triu_indices(len(measured), 1)
        means.append(measure(cosine(measured[first], measured[second])).mean())
        counts.append(len(measured))
    note = (
        f"{min(counts)}{f' to {max(counts)}' if max(counts) > min(counts) else ''} versions of each" if counts else ""
    )
    return mean(np.array(means), evidence.weights_of(np.array([person_of[face] for face in faces])), note)


def set_threshold(evidence: Evidence, judge: str, far: float) -> ThresholdEstimate:
    """The threshold at the false-accept rate ``far`` of all pairs of different people among the calibration images."""
    embeddings = stack(evidence.calibration[f"{judge}.embedding"])
    return _set_threshold(far, evidence.draws, tuple(evidence.calibration["identity"]), embeddings.tobytes())


@lru_cache(maxsize=16)
def _set_threshold(far: float, draws: int, names: tuple[str, ...], embeddings: bytes) -> ThresholdEstimate:
    """That of embeddings (N, D), as bytes. The metrics and attempts of a cell share it: it takes tenths of a second."""
    values = np.frombuffer(embeddings).reshape(len(names), -1)
    return estimate_threshold(far, pair_strangers(values, np.array(names, dtype=object), far), draws)


def too_few(far: float, pairs: int, people: str = "calibration") -> str:
    """The reason why there is no threshold at the false-accept rate ``far``."""
    return f"{pairs} impostor pairs of {people} cannot resolve a false-accept rate of {far:g}"


Comparison = Callable[[np.ndarray, float | np.ndarray], np.ndarray]
"""From distances (N,) and a threshold to bool (N,), such as `operator.lt`; with thresholds (B, 1) to (B, N)."""


def share_at_threshold(
    distances: np.ndarray, weights: np.ndarray, compare: Comparison, threshold: float, note: str
) -> Value:
    """The share of the finite ``distances`` (N,) for which ``compare(distance, threshold)`` holds, of N."""
    return share(np.where(np.isfinite(distances), compare(distances, threshold), np.nan), weights, note)


def draw_shares(distances: np.ndarray, weights: np.ndarray, compare: Comparison, thresholds: np.ndarray) -> np.ndarray:
    """The share of the finite ``distances`` (N,) for which ``compare`` holds, in each bootstrap sample, (draws,).

    ``weights``: (draws, N). ``thresholds``: (draws,), that of each sample; a sample without one is NaN.
    """
    measured = np.isfinite(distances)
    held = compare(distances[measured], thresholds[:, None]) * weights[:, measured]  # (draws, N)
    totals = weights @ measured
    return np.divide(
        held.sum(axis=1), totals, out=np.full(len(weights), math.nan), where=(totals > 0) & np.isfinite(thresholds)
    )


def shares_at_rate(evidence: Evidence, far: float, compare: Comparison) -> dict[str, Value]:
    """For each judge with an embedding: `share_at_threshold` of the faces' distances from their originals.

    The threshold accepts at most a share ``far`` of the impostor pairs of the calibration images. The value is NaN
    if those pairs are too few for ``far``. Each bootstrap sample has the threshold that its calibration people set.
    """
    values = {}
    for judge in judges_with(evidence, "embedding"):
        from_original = distances(*evidence.pair(f"{judge}.embedding"))
        threshold = set_threshold(evidence, judge, far)
        if math.isnan(threshold.distance):
            values[judge] = Value(math.nan, 0, len(from_original), note=too_few(far, threshold.pairs))
            continue
        weights, note = evidence.weights, threshold.describe()
        value = share_at_threshold(from_original, weights, compare, threshold.distance, note)
        values[judge] = replace(value, draws=draw_shares(from_original, weights, compare, threshold.draws))
    return values
