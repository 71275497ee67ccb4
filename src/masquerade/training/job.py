"""The description of one training."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class TrainingJob:
    """One training: faces in, checkpoint out. Small and stateless, so that a cluster can requeue it."""

    faces: Path
    """The archive of faces."""
    backbones: Mapping[str, Path]
    """Name of each backbone that is needed -> its checkpoint."""
    checkpoint: Path
    """The file to write."""
    state: Path
    """The state of the unfinished training, from which the loop resumes after an interruption."""
    seed: int
    threads: int
    """CPU threads."""
    log: Callable[[int, Mapping[str, float]], None]
    """``log(step, {name: value})`` records the curves."""
    picture: Callable[[str, np.ndarray], None]
    """``picture(name, uint8 (H, W, 3))`` records a sample."""
    base: Path | None = None
    """A checkpoint whose parts need not be trained again, if both trainings have them in common: for an ablation, that
    of the method without it; otherwise that of a related method.
    """
    _: KW_ONLY
    people: str
    """The part of the faces that it learns from: a group of people (core/people.py), or a split."""
