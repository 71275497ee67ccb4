"""Guesses keys: how often a random key recovers the identity from an anonymized picture."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from masquerade.core import measurements
from masquerade.core.errors import ProtocolError
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.core.measurements import stack
from masquerade.core.statistics import between, threshold_at
from masquerade.judges import Judge
from masquerade.methods import Method
from masquerade.params.blocks import GuessingSettings
from masquerade.pipeline import anonymization


def guess(
    anonymized: FaceArchive, method: Method, judge: Judge, source: Path, calibrate_on: str, settings: GuessingSettings
) -> dict[str, Any]:
    """Try ``settings.guesses`` random keys on some pictures. Returns plain numbers.

    ``source``: measurements of the originals. They hold the embeddings of the original identities and, in the split
    ``calibrate_on``, the embeddings that set the threshold.

    The judge accepts a picture if its embedding is nearer to that of the original than the threshold. In the result,
    ``accepted`` of ``tried`` (picture, key) pairs are accepted; ``opened`` of ``pictures`` are accepted with at least
    one key; ``accepted_right`` are accepted with the right key, and ``accepted_unopened`` without recovery. ``keys``:
    how many keys there are (None: too many to count). Raises ProtocolError if the method takes no key.
    """
    keys = method.capabilities.keys
    if keys is None or not method.capabilities.invertible:
        raise ProtocolError(f"{anonymized.facts['method']} takes no key, so there is none to guess.")
    rows = anonymization.subset(anonymized.select(), settings.pictures)
    faces, seed = anonymized.load(rows=rows), anonymized.facts["seed"]
    column, originals = f"{settings.judge}.embedding", measurements.read(source)
    original_embeddings = stack(originals.set_index("id").loc[rows["source_id"], column])
    threshold = _threshold(originals[originals["split"] == calibrate_on], column, settings.far)

    def same(images: np.ndarray) -> np.ndarray:
        embeddings = judge.measure(to_float(to_uint8(images)))["embedding"]
        return np.linalg.norm(embeddings - original_embeddings, axis=1) < threshold

    right = keys.experiment(seed)
    drawn = (keys.experiment(seed, "guess", number) for number in range(settings.guesses))
    tried = [key for key in dict.fromkeys(drawn) if key != right]
    hits = [same(method.recover(faces.images, key)) for key in tqdm(tried, desc="guesses", mininterval=5)]
    return {
        "judge": settings.judge,
        "far": settings.far,
        "threshold": threshold if math.isfinite(threshold) else None,
        "keys": keys.count,
        "pictures": len(faces),
        "guesses": len(tried),
        "tried": len(tried) * len(faces),
        "accepted": int(np.sum(hits)),
        "opened": int(np.any(hits, axis=0).sum()),
        "accepted_right": int(same(method.recover(faces.images, right)).sum()),
        "accepted_unopened": int(same(faces.images).sum()),
    }


def _threshold(calibration: pd.DataFrame, column: str, far: float) -> float:
    """The distance below which a share ``far`` of the pairs of different people lies; NaN for too few pairs."""
    embeddings = stack(calibration[column])
    measured = np.isfinite(embeddings).all(axis=1)
    return threshold_at(far, np.sort(between(embeddings[measured], calibration["identity"].to_numpy()[measured])))
