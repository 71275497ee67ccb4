"""How well attributes of real faces are recognised by a classifier that has learnt from anonymized ones."""

import math

import numpy as np
import pandas as pd

from masquerade.attributes.predictions import KNOWN
from masquerade.attributes.regions import INNER, OUTER
from masquerade.metrics import Evidence, Metric, Value

THRESHOLD = 0.5


class AttributeAccuracy(Metric):
    """Mean over real test pictures and attributes of [(probability >= 0.5) = label], in [0, 1].

    Parts: ``combined`` (all attributes), ``inner`` and ``outer`` (regions of the face), each attribute by its name, and
    ``<region>.balanced``: the mean over attributes of (true positive rate + true negative rate) / 2, of attributes that
    some test pictures have and others have not; always saying no to a rare one gives 0.5 there. Pseudo-labels have
    their labeller in front: ``pseudo_a.combined``. A picture without a prediction is missing from ``over``. Nothing
    where no classifier was trained.
    Reference: Barattin et al. 2023 (FALCO), sections 4.1 and 4.2.2.
    """

    title = "attribute accuracy"
    direction = "higher"
    unit = "share of pictures and attributes"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        if evidence.attributes is None:
            return {}
        known = _matrix(evidence.attributes[evidence.attributes["labels"] == KNOWN], "label")
        found: dict[str, Value] = {}
        for labels, frame in evidence.attributes.groupby("labels", sort=False):
            if labels == KNOWN:
                found |= _parts(frame, "") | _absent(frame)
            else:
                values = _parts(frame, _agreement(_matrix(frame, "label"), known))
                found |= {f"{labels}.{part}": value for part, value in values.items()}
        return found


def _matrix(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """One column as pictures x attributes."""
    return frame.pivot(index="id", columns="attribute", values=column).astype("float64")


def _parts(frame: pd.DataFrame, told: str) -> dict[str, Value]:
    label, probability = _matrix(frame, "label"), _matrix(frame, "probability")
    seen = label.notna() & probability.notna()
    right = ((probability >= THRESHOLD) == (label == 1)).astype("float64").where(seen)
    note = f"threshold {THRESHOLD:g}; learnt from {frame['learnt_from'].iloc[0]} faces{told}"
    regions = {
        "combined": list(right.columns),
        "inner": [name for name in INNER if name in right],
        "outer": [name for name in OUTER if name in right],
    }
    found = {}
    for region, names in regions.items():
        found[region] = _value(right[names].to_numpy(), note)
        found[f"{region}.balanced"] = _balanced(right[names].to_numpy(), label[names].to_numpy(), note)
    return found | {name: _value(right[[name]].to_numpy(), note) for name in right}


def _value(right: np.ndarray, note: str) -> Value:
    """Of (pictures, attributes), NaN where not seen: the mean, over the pictures that show anything."""
    counted = np.isfinite(right)
    if not counted.any():
        return Value(math.nan, 0, len(right), note="no test picture has a label and a prediction")
    return Value(float(right[counted].mean()), int(counted.any(axis=1).sum()), len(right), note=note)


def _balanced(right: np.ndarray, label: np.ndarray, note: str) -> Value:
    rates = []
    for answers, truth in zip(right.T, label.T, strict=True):
        kinds = [answers[np.isfinite(answers) & (truth == kind)] for kind in (1, 0)]
        if all(kind.size for kind in kinds):
            rates.append(sum(kind.mean() for kind in kinds) / 2)
    over = int(np.isfinite(right).any(axis=1).sum())
    if not rates:
        return Value(math.nan, 0, len(right), note="no attribute is there in some test pictures and not in others")
    some = "" if len(rates) == right.shape[1] else f"; {len(rates)} of {right.shape[1]} attributes vary"
    return Value(float(np.mean(rates)), over, len(right), note=note + some)


def _absent(frame: pd.DataFrame) -> dict[str, Value]:
    """Attributes of the paper that these faces have no label for."""
    missing = {*INNER, *OUTER} - set(frame["attribute"])
    pictures = frame["id"].nunique()
    return {name: Value(math.nan, 0, pictures, note="these faces have no such label") for name in sorted(missing)}


def _agreement(pseudo: pd.DataFrame, known: pd.DataFrame) -> str:
    """How often pseudo-labels of the test pictures are right, where that is known."""
    names = [name for name in pseudo if name in known]
    ids = pseudo.index.intersection(known.index)
    first, second = pseudo.loc[ids, names].to_numpy(), known.loc[ids, names].to_numpy()
    both = np.isfinite(first) & np.isfinite(second)
    return f"; {(first[both] == second[both]).mean():.3f} of the labels are right" if both.any() else ""
