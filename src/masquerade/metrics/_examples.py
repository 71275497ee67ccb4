"""Small measurements for the examples in the docstrings of the metrics. No metric imports this module."""

from collections.abc import Mapping, Sequence

import pandas as pd

from masquerade.metrics import Evidence, Metric

Columns = Mapping[str, Sequence[object]]


def evidence(original: Columns, derived: Columns, **parts: Columns | int) -> Evidence:
    """Evidence from columns, one row a face: ``{"judge.quantity": [...]}``; ``parts`` are other fields of Evidence.

    Faces are called f0, f1, ... and show different people, unless a column says otherwise. The calibration images
    are the originals, unless ``parts`` gives others.
    """
    frames = {"original": _frame(original), "derived": _frame(derived), "calibration": _frame(original)}
    frames |= {
        name: _frame(part) if isinstance(part, Mapping) and name != "distractors" else part
        for name, part in parts.items()
    }
    return Evidence(judges=tuple(dict.fromkeys(name.split(".")[0] for name in derived if "." in name)), **frames)


def attack_evidence(answers: Columns) -> Evidence:
    """Evidence with the answers of attackers, one row a probe, as pipeline/informed.py gives them.

    A probe shows a tested person and belongs to one training of the attacker ``naive``, which names people with the
    recognizer ``net`` among ten people, unless a column says otherwise.
    """
    count = len(next(iter(answers.values())))
    usual = {
        "attacker": "naive", "asks": "naming", "recognizer": "net", "trial": 0, "learned": True, "control": False,
        "group": "tested", "status": "ok", "people": 10.0, "comparisons": 500.0,
    }  # fmt: skip
    columns = {name: [value] * count for name, value in usual.items()} | dict(answers)
    return evidence({"id": ["f0"]}, {"id": ["f0"]}, attack_results=columns)


def values(metric: type[Metric], evidence: Evidence, **params: object) -> dict[str, float]:
    """The values of a metric by judge or part, rounded to four digits."""
    computed = metric(metric.Params(**params)).compute(evidence)
    return {name: round(value.value, 4) for name, value in computed.items()}


def _frame(columns: Columns) -> pd.DataFrame:
    count = len(next(iter(columns.values())))
    names = {
        "id": [f"f{row}" for row in range(count)],
        "source_id": [f"f{row}" for row in range(count)],
        "identity": [f"person {row}" for row in range(count)],
    }
    return pd.DataFrame({name: list(column) for name, column in (names | dict(columns)).items()})
