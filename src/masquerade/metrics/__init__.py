"""One module a metric: pure functions of measurements. No picture is opened here and no network is run."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from masquerade.settings import Settings


@dataclass(frozen=True)
class Evidence:
    """What is known about one cell.

    ``original`` and ``derived`` are measurements of the same faces, row by row (``derived`` is the anonymized set,
    ``original`` its sources); rows whose ``status`` is not ok hold NaN. ``calibration`` are measurements of original
    pictures of identities that are disjoint from the test images (the validation split). ``judges`` are the names
    that were measured. ``target`` are measurements of the original pictures of the set that everything learns from.
    ``attributes`` are predictions on real test pictures (attributes/predictions.py), where the cell has some.
    ``attempts`` are measurements of further pictures of the same faces: what was brought back with the right key, with
    a wrong one, ..., and what further keys make of them; columns ``attempt``, ``number``, ``source_id`` say which.
    ``size`` is the side of the pictures judged, in pixels; judges give coordinates in them.
    Columns: id, identity, split, status, reason, and ``<judge>.<quantity>``; of originals that are annotated also
    ``attribute.<name>`` (1 or 0).
    """

    original: pd.DataFrame
    derived: pd.DataFrame
    calibration: pd.DataFrame
    judges: tuple[str, ...]
    target: pd.DataFrame | None = None
    attributes: pd.DataFrame | None = None
    attempts: pd.DataFrame | None = None
    size: int | None = None

    def pair(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """(original, derived) values of one quantity, float64 (N, ...), NaN where missing."""
        return stack(self.original[column]), stack(self.derived[column])


def stack(column: pd.Series) -> np.ndarray:
    """A measurements column as float64 (N,) or (N, D); a missing value is NaN."""
    if column.dtype != object:
        return column.to_numpy(dtype=np.float64)
    width = max((np.size(value) for value in column if value is not None), default=1)
    missing = np.full(width, np.nan)
    return np.stack([missing if value is None else np.asarray(value, dtype=np.float64) for value in column])


@dataclass(frozen=True)
class Value:
    """One number of a table: its ``value``, how many faces or pairs it is ``over``, ``of`` how many there were.

    ``spread``: standard deviation over folds or faces where the protocol reports one (``spread_of`` says which).
    ``note``: protocol facts that a reader must know (threshold, false-accept rate).
    """

    value: float
    over: int
    of: int
    spread: float | None = None
    spread_of: str = ""
    note: str = ""


class Metric(ABC):
    """What a module of metrics/ defines, once: a subclass with its ``Params`` (its block under ``metrics:``).

    Its docstring gives formula, shapes, range, and reference.
    """

    title: ClassVar[str]
    direction: ClassVar[Literal["higher", "lower", "none"]]
    unit: ClassVar[str]
    digits: ClassVar[int] = 4
    repeats: ClassVar[bool] = True
    """Several derived pictures of one face may be counted; False where its protocol has one picture a face."""

    class Params(Settings):
        pass

    def __init__(self, params: Settings):
        self.params = params

    @abstractmethod
    def compute(self, evidence: Evidence) -> dict[str, Value]:
        """One value for each judge (or feature) that it applies to: {judge: value}; {'': value} where there is none."""


BASE = Metric
