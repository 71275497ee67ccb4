"""One module a metric, a pure function of measurements, and the base class that specifies a metric.

Nothing in this room opens a picture or runs a network: judges/ measures, and papers/ makes the tables and claims.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from masquerade.core.measurements import stack
from masquerade.core.settings import NoParameters, Settings


@dataclass(frozen=True)
class Evidence:
    """The measurements of one cell, which a metric computes from.

    All frames have one row a face and the columns id, identity, split, status, reason and ``<judge>.<quantity>``.
    Annotated originals also have ``attribute.<name>`` (1 or 0). Rows whose ``status`` is not ok hold NaN.
    """

    original: pd.DataFrame
    """The sources of the anonymized faces, in the order of ``derived``."""
    derived: pd.DataFrame
    """The anonymized faces."""
    calibration: pd.DataFrame
    """Original pictures of people who are not in the test split (the validation split); they set thresholds."""
    judges: tuple[str, ...]
    """The judges that measured the anonymized faces."""
    target: pd.DataFrame | None = None
    """The original pictures of the set that everything learns from."""
    attributes: pd.DataFrame | None = None
    """Predictions on real test pictures (pipeline/attributes/predictions.py), if the cell has them."""
    attempts: pd.DataFrame | None = None
    """Further pictures of the same faces: recovered with the right key or a wrong one, or anonymized with further keys.

    The columns ``attempt``, ``number`` and ``source_id`` say which."""
    size: int | None = None
    """Side of the judged pictures in pixels. Coordinates that judges give are in these pixels."""

    def pair(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """The values (original, derived) of one quantity, float64 (N, ...) each. A missing value is NaN."""
        return stack(self.original[column]), stack(self.derived[column])


@dataclass(frozen=True)
class Value:
    """One number of a table, with its denominator.

    ``over``: the faces or pairs that the value is computed from. ``of``: the faces or pairs that there are.
    ``spread``: the standard deviation over folds or faces (``spread_of``), if the protocol reports one.
    ``note``: facts of the protocol that a reader needs (threshold, false-accept rate).
    """

    value: float
    over: int
    of: int
    spread: float | None = None
    spread_of: str = ""
    note: str = ""


class Metric(ABC):
    """The base class: each module of metrics/ defines one subclass.

    ``Params`` is its block under ``metrics:`` in params.yaml. Its docstring gives the formula, shapes, range,
    direction, reference, and an example that runs as a test.
    """

    title: ClassVar[str]
    direction: ClassVar[Literal["higher", "lower", "none"]]
    unit: ClassVar[str]
    digits: ClassVar[int] = 4
    repeats: ClassVar[bool] = True
    """Whether several derived pictures of one face may be counted. False if the protocol has one picture a face."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings):
        self.params = params

    @abstractmethod
    def compute(self, evidence: Evidence) -> dict[str, Value]:
        """The value for each judge or part that the metric applies to, by name; the name is '' without a judge."""


BASE = Metric
