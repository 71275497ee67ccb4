"""The metrics, pure functions of measurements, one file for each family, and the base class that specifies a metric.

Nothing in this room opens an image or runs a network: judges/ measures, and papers/ makes the tables and claims.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from masquerade.core.face_tables import stack
from masquerade.core.settings import NoParameters, Settings
from masquerade.core.statistics import compute_interval, people_of, people_weights


@dataclass(frozen=True)
class Evidence:
    """The measurements of one cell, which a metric computes from.

    All frames have one row a face and the columns id, identity, split, status, reason and ``<judge>.<quantity>``.
    Annotated originals also have ``attribute.<name>`` (1 or 0). Rows whose ``status`` is not ok hold NaN:

        id    identity  split  status   reason            dlib_face.embedding  pixels.psnr
        f012  Aaron     test   ok                         [0.02, -0.11, ...]   18.4
        f013  Aaron     test   refused  no face is found  NaN                  NaN
    """

    original: pd.DataFrame
    """The sources of the anonymized faces, in the order of ``derived``."""
    derived: pd.DataFrame
    """The anonymized faces."""
    calibration: pd.DataFrame
    """Original images of people who are not in the test split (the validation split); they set thresholds."""
    judges: tuple[str, ...]
    """The judges that measured the anonymized faces."""
    target: pd.DataFrame | None = None
    """Original images of the people that methods learn from, none of them in the test split."""
    attributes: pd.DataFrame | None = None
    """Predictions on real test images (pipeline/attributes.py), if the cell has them."""
    recoveries: pd.DataFrame | None = None
    """Further images of the same faces: recovered with the right key or a wrong one, or anonymized with further keys.

    The columns ``attempt``, ``number`` and ``source_id`` say which."""
    keys_attacked: Mapping[str, Any] | None = None
    """What attacks on the keys found (pipeline/key_attacks.py), if the cell was attacked."""
    attack_results: pd.DataFrame | None = None
    """What attackers who know the method answered: one row a probe of an attack (pipeline/informed.py)."""
    downstream_utility: pd.DataFrame | None = None
    """What networks that learned from anonymized images do on unprotected ones: one row a unprotected test image.

    The columns are id, identity, ``landmark_error`` (percent of the eye distance), ``found`` (1 or 0: the detector's
    best cell holds the face) and ``overlap`` (intersection over union of its box with the true one)."""
    gallery: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Further original images of the same people, which are not anonymized; most datasets have none."""
    distractors: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Judge -> embeddings of generated faces of nobody, (M, D), which enlarge a gallery."""
    size: int | None = None
    """Side of the judged images in pixels. Coordinates that judges give are in these pixels."""
    draws: int = 0
    """The number of bootstrap samples of the people; 0: no intervals."""

    def weights_of(self, people: np.ndarray) -> np.ndarray:
        """How often each of N images counts in each bootstrap sample, (draws, N), from the person in it, (N,)."""
        return people_weights(people, self.draws)

    @cached_property
    def people(self) -> np.ndarray:
        """The person in each row of ``derived``, (N,). A face without a known identity is a person of its own."""
        return people_of(self.original["identity"].to_numpy(), self.original["id"].to_numpy())

    @cached_property
    def weights(self) -> np.ndarray:
        """How often each row of ``derived`` counts in each bootstrap sample, (draws, N)."""
        return self.weights_of(self.people)

    @cached_property
    def unprotected(self) -> pd.DataFrame:
        """The images of the gallery, then `original`: ``len(gallery)`` rows come before the sources."""
        return pd.concat([self.gallery, self.original], ignore_index=True) if len(self.gallery) else self.original

    def pair(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """The values (original, derived) of one quantity, float64 (N, ...) each. A missing value is NaN."""
        return stack(self.original[column]), stack(self.derived[column])


@dataclass(frozen=True)
class Value:
    """One number of a table, with its denominator.

    ``over``: the faces or pairs that the value is computed from. ``of``: the faces or pairs that there are.
    ``spread``: the standard deviation over folds or faces (``spread_of``), if the protocol reports one.
    ``note``: facts of the protocol that a reader needs (threshold, false-accept rate).
    ``draws``: the value in each bootstrap sample of the people, (Evidence.draws,), with the weights of
    `Evidence.weights_of`. A sample without a value is NaN. Thresholds that other people set differ between samples, too
    (core/thresholds.py); those that authors published, and those of attackers, do not.
    ``people``: how many people are behind a share of faces; None for another number. A share of 0 or 1, or near it, has
    its interval from it, since hardly a draw differs from such a share.
    ``found``: of a share, how large a part of all faces ``over`` is in each sample, (Evidence.draws,); None if it is 1.
    """

    value: float
    over: int
    of: int
    spread: float | None = None
    spread_of: str = ""
    note: str = ""
    draws: np.ndarray | None = field(default=None, compare=False)
    people: int | None = field(default=None, compare=False)
    found: np.ndarray | None = field(default=None, compare=False)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the value (`compute_interval`), or None."""
        return compute_interval(self.value, self.draws, self.people)


class Metric(ABC):
    """The base class. A new metric is a new class with a ``name``, in a file of metrics/ of its own or in that of its
    family.

    ``Params`` is its block under ``metrics:`` in params.yaml. Its docstring gives the formula, shapes, range,
    direction, reference, and an example that runs as a test.
    """

    name: ClassVar[str]
    """Its key in params.yaml and in the files of measured values."""
    title: ClassVar[str]
    direction: ClassVar[Literal["higher", "lower", "none"]]
    unit: ClassVar[str]
    digits: ClassVar[int] = 4
    repeats: ClassVar[bool] = True
    """Whether several derived images of one face may be counted. False if the protocol has one image a face."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings):
        self.params = params

    @abstractmethod
    def compute(self, evidence: Evidence) -> dict[str, Value]:
        """The value for each judge or part that the metric applies to, by name; the name is '' without a judge."""


BASE = Metric
