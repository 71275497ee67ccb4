"""From the measurements of one cell to its metrics: aligns the rows, asks every metric, writes plain JSON."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from masquerade import measuring
from masquerade.attributes import predictions
from masquerade.errors import ArchiveError, ProtocolError
from masquerade.metrics import Evidence, Metric, Value


def evidence(
    source: Path,
    derived: Path,
    calibrate_on: str,
    target: Path | None = None,
    attributes: Path | None = None,
    attempts: Path | None = None,
) -> Evidence:
    """Pair the measurements of an anonymized set with those of its sources.

    ``source`` measures the dataset's own pictures (test and calibration splits), ``derived`` the anonymized test split,
    ``target`` the pictures of the set that everything learns from; ``attributes`` holds predictions of attributes;
    ``attempts`` measures what was brought back of the same faces. Raises ArchiveError where a source was not measured,
    or pictures of another size than their sources.
    """
    originals, anonymized = measuring.read(source), measuring.read(derived)
    tried = measuring.read(attempts) if attempts else None
    if tried is not None and tried.empty:  # every face was refused, so there was nothing to bring back
        tried = None
    size = _size(source, derived, *([attempts] if attempts else []))
    known = originals.set_index("id")
    lost = [name for name in anonymized["source_id"] if name not in known.index]
    if lost:
        raise ArchiveError(f"{source} does not measure {len(lost)} sources of {derived} (the first: {lost[0]}).")
    if tried is not None and not tried["source_id"].isin(anonymized["source_id"]).all():
        raise ArchiveError(f"{attempts} holds attempts at faces that {derived} has not. Measure both again.")
    paired = known.loc[anonymized["source_id"]].reset_index()
    calibration = originals[(originals["split"] == calibrate_on) & (originals["status"] == "ok")]
    return Evidence(
        original=paired,
        derived=anonymized.reset_index(drop=True),
        calibration=calibration.reset_index(drop=True),
        judges=_judges(anonymized),
        target=measuring.read(target) if target else None,
        attributes=predictions.read(attributes) if attributes else None,
        attempts=tried,
        size=size,
    )


def _judges(measurements: pd.DataFrame) -> tuple[str, ...]:
    """Who looked at these pictures."""
    return tuple(dict.fromkeys(column.split(".")[0] for column in measurements.columns if "." in column))


def _size(*files: Path) -> int | None:
    """The side of the pictures of all files; None where all of them were refused."""
    sizes = {path: size for path in files if (size := measuring.size(path)) is not None}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ArchiveError(f"Measurements of pictures of different sizes cannot be compared ({told}).")
    return next(iter(sizes.values()), None)


def evaluate(metrics: Mapping[str, Metric], seen: Evidence) -> dict[str, dict[str, Any]]:
    """{metric: {judge: value with its denominator}}; a value that is not a number is None. Raises ProtocolError."""
    return {name: _plain(name, metric.compute(seen)) for name, metric in metrics.items()}


def evaluate_attempts(metrics: Mapping[str, Metric], seen: Evidence) -> dict[str, dict[str, dict[str, Any]]]:
    """{attempt: what `evaluate` gives for its pictures in the place of the anonymized ones}; {} without attempts.

    An attempt may have several pictures of a face (several wrong keys): each is compared with its original, and the
    metrics whose protocol has one picture a face are left out. Raises ProtocolError.
    """
    if seen.attempts is None:
        return {}
    counted = {name: metric for name, metric in metrics.items() if metric.repeats}
    sources = seen.original.drop_duplicates("id").set_index("id")
    found = {}
    for attempt, rows in seen.attempts.groupby("attempt", sort=False):
        originals = sources.loc[rows["source_id"]].reset_index()
        derived = rows.reset_index(drop=True)
        part = replace(
            seen, original=originals, derived=derived, judges=_judges(derived), attributes=None, attempts=None
        )
        found[attempt] = evaluate(counted, part)
    return found


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


def row(
    cell: Mapping[str, Any],
    statement: Mapping[str, Any],
    values: Mapping[str, Any],
    attempts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The JSON of one cell, as the tables read it; with what `evaluate_attempts` gave, where there were attempts."""
    known = {"cell": dict(cell), "statement": dict(statement), "metrics": dict(values)}
    return known | ({"attempts": dict(attempts)} if attempts else {})


def counts(measurements: pd.DataFrame) -> dict[str, int]:
    """How many faces are there, and how many were refused on the way."""
    return {"faces": len(measurements), "refused": int((measurements["status"] != "ok").sum())}
