"""Guessing the key: how often a key that was drawn at random brings the identity back from the anonymized picture."""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field
from tqdm import tqdm

from masquerade import anonymization, measuring
from masquerade.errors import ProtocolError
from masquerade.images import FaceArchive, to_float, to_uint8
from masquerade.judges import Judge
from masquerade.methods import Method
from masquerade.metrics import stack
from masquerade.metrics._values import between, threshold_at
from masquerade.settings import Settings


class GuessingSettings(Settings):
    judge: str
    """Who decides whether a picture shows the same person: a judge with an embedding that no training has seen."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate of its threshold: what a guess achieves that shows any other person."""
    pictures: Annotated[int, Field(ge=1)]
    """Anonymized pictures that are attacked."""
    guesses: Annotated[int, Field(ge=1)]
    """Different keys that are tried on each."""


def guess(
    anonymized: FaceArchive, method: Method, judge: Judge, source: Path, calibrate_on: str, settings: GuessingSettings
) -> dict[str, Any]:
    """Try ``settings.guesses`` random keys on some pictures; what came of it, as plain numbers.

    ``source``: measurements of the originals, which hold the embeddings that are to be reached and, in the split
    ``calibrate_on``, those that set the threshold. ``accepted`` of ``tried`` (picture, key) pairs bring the identity
    back; ``opened``: of ``pictures``, by at least one key; ``accepted_right``, ``accepted_unopened``: with the right
    key, and the anonymized picture as it is. ``keys``: how many there are (None: too many to count). Raises
    ProtocolError where the method takes no key.
    """
    keys = method.capabilities.keys
    if keys is None or not method.capabilities.invertible:
        raise ProtocolError(f"{anonymized.facts['method']} takes no key that could be guessed.")
    rows = anonymization.chosen(anonymized.select(), settings.pictures)
    faces, seed = anonymized.load(rows=rows), anonymized.facts["seed"]
    column, known = f"{settings.judge}.embedding", measuring.read(source)
    wanted = stack(known.set_index("id").loc[rows["source_id"], column])
    threshold = _threshold(known[known["split"] == calibrate_on], column, settings.far)

    def same(images: np.ndarray) -> np.ndarray:
        seen = judge.measure(to_float(to_uint8(images)))["embedding"]
        return np.linalg.norm(seen - wanted, axis=1) < threshold

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
    """The distance below which two faces are one person, at ``far`` of the pairs of strangers; NaN for too few."""
    embeddings = stack(calibration[column])
    seen = np.isfinite(embeddings).all(axis=1)
    return threshold_at(far, np.sort(between(embeddings[seen], calibration["identity"].to_numpy()[seen])))
