"""From the measurements of one cell to its metrics: aligns the rows, asks every metric, writes plain JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from masquerade import measuring
from masquerade.attributes import predictions
from masquerade.errors import ArchiveError, ProtocolError
from masquerade.metrics import Evidence, Metric, Value


def evidence(
    source: Path, derived: Path, calibrate_on: str, target: Path | None = None, attributes: Path | None = None
) -> Evidence:
    """Pair the measurements of an anonymized set with those of its sources.

    ``source`` measures the dataset's own pictures (test and calibration splits), ``derived`` the anonymized test split,
    ``target`` the pictures of the set that everything learns from; ``attributes`` holds predictions of attributes.
    Raises ArchiveError where a source was not measured.
    """
    originals, anonymized = measuring.read(source), measuring.read(derived)
    known = originals.set_index("id")
    lost = [name for name in anonymized["source_id"] if name not in known.index]
    if lost:
        raise ArchiveError(f"{source} does not measure {len(lost)} sources of {derived} (the first: {lost[0]}).")
    paired = known.loc[anonymized["source_id"]].reset_index()
    judges = tuple(dict.fromkeys(column.split(".")[0] for column in anonymized.columns if "." in column))
    calibration = originals[(originals["split"] == calibrate_on) & (originals["status"] == "ok")]
    return Evidence(
        original=paired,
        derived=anonymized.reset_index(drop=True),
        calibration=calibration.reset_index(drop=True),
        judges=judges,
        target=measuring.read(target) if target else None,
        attributes=predictions.read(attributes) if attributes else None,
    )


def evaluate(metrics: Mapping[str, Metric], seen: Evidence) -> dict[str, dict[str, Any]]:
    """{metric: {judge: value with its denominator}}; a value that is not a number is None. Raises ProtocolError."""
    return {name: _plain(name, metric.compute(seen)) for name, metric in metrics.items()}


def _plain(name: str, values: Mapping[str, Value]) -> dict[str, Any]:
    plain = {}
    for judge, value in values.items():
        if not isinstance(value, Value) or value.over > value.of:
            raise ProtocolError(f"metric '{name}' must give a Value with over <= of for '{judge}', not {value!r}.")
        plain[judge] = {key: _number(item) for key, item in asdict(value).items()}
    return plain


def _number(item: Any) -> Any:
    if isinstance(item, float | np.floating):
        return float(item) if np.isfinite(item) else None
    return int(item) if isinstance(item, np.integer) else item


def row(cell: Mapping[str, Any], statement: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of one cell, as the tables read it."""
    return {"cell": dict(cell), "statement": dict(statement), "metrics": dict(values)}


def counts(measurements: pd.DataFrame) -> dict[str, int]:
    """How many faces are there, and how many were refused on the way."""
    return {"faces": len(measurements), "refused": int((measurements["status"] != "ok").sum())}
