"""Computes the metrics of one cell from its measurements, as plain JSON.

What `make_row` gives for a cell::

    cell: {dataset: synthetic_hq, method: falco, variant: m_0, seed: 0}
    statement: {faces: 48, refused: 1}
    metrics: {re_id: {arcface: {value: 0.04, over: 47, of: 48, low: 0.0, high: 0.11, ...}}}
    measurements: {data/mini/measurements/synthetic_hq/falco/m_0/0.parquet: 9e107d9d372b...}
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core import face_tables, files, fingerprints
from masquerade.core.errors import ArchiveError, ProtocolError
from masquerade.core.images import GALLERY
from masquerade.core.statistics import encode
from masquerade.metrics import Evidence, Metric, Value

SAME_FACES = "anonymized"
"""The name, among the attempts, of the anonymized images of the faces that were attempted: all faces or a part."""


PREDICTIONS = ["labels", "learned_from", "id", "attribute", "label", "probability"]
"""The columns of the predictions of attributes."""


@dataclass(frozen=True)
class CellFiles:
    """The files from which the metrics of a cell are computed. None: the cell has no such file."""

    source: Path
    """Measurements of the dataset's own images (test and calibration splits)."""
    derived: Path
    """Measurements of the anonymized test split."""
    target: Path | None = None
    """Measurements of images of the training set."""
    attributes: Path | None = None
    """Predictions of attributes."""
    recoveries: Path | None = None
    """Measurements of the attempts to recover the same faces."""
    key_attacks: Path | None = None
    """The results of attacks on the keys."""
    attack_results: Path | None = None
    """What attackers who know the method found out."""
    downstream_utility: Path | None = None
    """Results on unprotected images of networks that learned from the anonymized ones."""
    distractors: Path | None = None
    """Embeddings of generated faces, which enlarge the gallery."""

    def list_own(self) -> list[Path]:
        """Those whose hashes stand beside the metrics."""
        files = (
            self.derived,
            self.recoveries,
            self.key_attacks,
            self.attack_results,
            self.downstream_utility,
            self.source,
        )
        return [path for path in files if path]


def collect_evidence(given: CellFiles, calibrate_on: str, draws: int = 0) -> Evidence:
    """Pair the measurements of an anonymized set with those of its sources.

    ``calibrate_on``: the split whose identities set thresholds. ``draws``: bootstrap samples of the people. Raises
    ArchiveError if a source was not measured, or if images and their sources differ in size.
    """
    source, derived, attempts = given.source, given.derived, given.recoveries
    originals, anonymized = face_tables.read(source), face_tables.read(derived)
    recoveries = _read_optional(attempts)
    if recoveries is not None and recoveries.empty:  # every face was refused, so there was nothing to recover
        recoveries = None
    size = _find_size(source, derived, *([attempts] if attempts else []))
    by_id = originals.set_index("id")
    missing = [name for name in anonymized["source_id"] if name not in by_id.index]
    if missing:
        raise ArchiveError(
            f"{source} lacks {len(missing)} sources of {derived} (the first: {missing[0]}). Measure both again."
        )
    if recoveries is not None and not recoveries["source_id"].isin(anonymized["source_id"]).all():
        raise ArchiveError(f"{attempts} holds attempts at faces that are not in {derived}. Measure both again.")
    paired = by_id.loc[anonymized["source_id"]].reset_index()
    calibration = originals[(originals["split"] == calibrate_on) & (originals["status"] == "ok")]
    return Evidence(
        original=paired,
        derived=anonymized.reset_index(drop=True),
        calibration=calibration.reset_index(drop=True),
        judges=_list_judges(anonymized),
        target=_read_optional(given.target),
        attributes=read_predictions(given.attributes) if given.attributes else None,
        recoveries=recoveries,
        keys_attacked=files.read_json(given.key_attacks)["attacks"] if given.key_attacks else None,
        attack_results=_read_optional(given.attack_results),
        downstream_utility=_read_optional(given.downstream_utility),
        gallery=originals[originals["split"] == GALLERY].reset_index(drop=True),
        distractors=_read_distractors(given.distractors) if given.distractors else {},
        size=size,
        draws=draws,
    )


def _read_distractors(path: Path) -> Mapping[str, np.ndarray]:
    from masquerade.pipeline.distractors import read_distractors  # it imports torch, which most cells do not need

    return read_distractors(path)


def _read_optional(path: Path | None) -> pd.DataFrame | None:
    return face_tables.read(path) if path else None


def read_predictions(path: Path) -> pd.DataFrame:
    """The table of predictions. Raises ArchiveError if the file is missing, damaged or of another kind."""
    advice = f"Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
    try:
        return pq.read_table(path, columns=PREDICTIONS).to_pandas()
    except FileNotFoundError as error:
        raise ArchiveError(f"{path} is missing. {advice}") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path} is damaged, or holds no predictions of attributes ({error}). {advice}") from error


def _list_judges(table: pd.DataFrame) -> tuple[str, ...]:
    """The judges that measured these images."""
    return tuple(dict.fromkeys(column.split(".")[0] for column in table.columns if "." in column))


def _find_size(*files: Path) -> int | None:
    """The side in pixels of the images of all files. Returns None when all were refused."""
    sizes = {path: size for path in files if (size := face_tables.read_size(path)) is not None}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ArchiveError(
            f"Images of different sizes cannot be compared ({listed}). Measure images of the same image.size."
        )
    return next(iter(sizes.values()), None)


def evaluate(metrics: Mapping[str, Metric], measured: Evidence) -> dict[str, dict[str, Any]]:
    """{metric: {judge: value with its denominator}}. A value that is not finite becomes None.

    ``low`` and ``high`` are the ends of the value's interval, None without one. ``draws`` holds the bootstrap samples
    (`statistics.encode`), ``people`` the number of people behind a share and ``found`` the part of the faces that it is
    over in each sample, so that the difference of two cells has an interval too.
    Raises ProtocolError if a metric returns something else than Values.
    """
    return {name: _make_plain(name, metric.compute(measured)) for name, metric in metrics.items()}


def evaluate_attempts(metrics: Mapping[str, Metric], measured: Evidence) -> dict[str, dict[str, dict[str, Any]]]:
    """{attempt: `evaluate` of its pictures in the place of the anonymized ones}. Returns {} without attempts.

    An attempt may have several images of a face (several wrong keys). Each one is compared with its original. Then
    ``key_spread`` is the standard deviation of the value over these keys. Metrics whose protocol has one image of
    each face are left out. SAME_FACES has the anonymized images of the same faces, so that a claim can compare an
    attempt with them face by face. Raises ProtocolError as `evaluate`.
    """
    if measured.recoveries is None:
        return {}
    repeatable = {name: metric for name, metric in metrics.items() if metric.repeats}
    sources = measured.original.drop_duplicates("id").set_index("id")
    before = measured.derived[measured.derived["source_id"].isin(measured.recoveries["source_id"])]
    values = {SAME_FACES: evaluate(repeatable, _select_attempt(measured, sources, before))}
    for attempt, rows in measured.recoveries.groupby("attempt", sort=False):
        values[attempt] = evaluate(repeatable, _select_attempt(measured, sources, rows))
        keys = [part for _, part in rows.groupby("number")]
        if len(keys) > 1:
            whole = replace(measured, draws=0)
            _add_key_spread(
                values[attempt], [evaluate(repeatable, _select_attempt(whole, sources, part)) for part in keys]
            )
    return values


def _select_attempt(measured: Evidence, sources: pd.DataFrame, rows: pd.DataFrame) -> Evidence:
    """The evidence with the images ``rows`` of one attempt in the place of the anonymized ones."""
    derived = rows.reset_index(drop=True)
    originals = sources.loc[rows["source_id"]].reset_index()
    return replace(
        measured, original=originals, derived=derived, judges=_list_judges(derived), attributes=None, recoveries=None,
        attack_results=None, downstream_utility=None,
    )  # fmt: skip


def _add_key_spread(values: dict[str, dict[str, dict[str, Any]]], by_key: list[dict[str, dict[str, Any]]]) -> None:
    """Add ``key_spread`` to each value that has a number for every key."""
    for metric, judges in values.items():
        for judge, value in judges.items():
            numbers = [each[metric].get(judge, {}).get("value") for each in by_key]
            if None not in numbers:
                value["key_spread"] = float(np.std(numbers, ddof=1))


def _make_plain(name: str, values: Mapping[str, Value]) -> dict[str, Any]:
    plain = {}
    for judge, value in values.items():
        if not isinstance(value, Value) or value.over > value.of:
            raise ProtocolError(f"The metric '{name}' must give a Value with over <= of for '{judge}', not {value!r}.")
        low, high = value.interval or (None, None)
        draws, found = (None if each is None or low is None else encode(each) for each in (value.draws, value.found))
        plain[judge] = {
            "value": _to_plain_number(value.value), "over": _to_plain_number(value.over),
            "of": _to_plain_number(value.of),
            "spread": _to_plain_number(value.spread), "spread_of": value.spread_of, "note": value.note,
            "low": low, "high": high, "people": value.people, "draws": draws, "found": found,
        }  # fmt: skip
    return plain


def _to_plain_number(item: Any) -> Any:
    if isinstance(item, float | np.floating):
        return float(item) if np.isfinite(item) else None
    return int(item) if isinstance(item, np.integer) else item


def make_row(
    cell: Mapping[str, Any],
    statement: Mapping[str, Any],
    values: Mapping[str, Any],
    attempts: Mapping[str, Any] | None = None,
    read: Sequence[Path] = (),
) -> dict[str, Any]:
    """The JSON of one cell, as the tables read it. ``attempts``: the result of `evaluate_attempts`.

    ``read``: the measurements and attacks that the values were computed from. The JSON holds the MD5 of each file.
    """
    tree = {"cell": dict(cell), "statement": dict(statement), "metrics": dict(values)}
    tree |= {"measurements": {path.as_posix(): fingerprints.md5(path) for path in read}}
    return tree | ({"attempts": dict(attempts)} if attempts else {})


def list_numbers(values: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """``<metric>.<judge>`` -> number, from the result of `evaluate`. Values that are None are left out."""
    values_by_name = {
        f"{metric}.{judge}".strip("."): value for metric, judges in values.items() for judge, value in judges.items()
    }
    return {name: value["value"] for name, value in values_by_name.items() if value["value"] is not None}


def count_faces(table: pd.DataFrame) -> dict[str, int]:
    """The number of faces in measurements, and how many of them were refused."""
    return {"faces": len(table), "refused": int((table["status"] != "ok").sum())}


def summarize(cells: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """dataset -> method/variant -> metric.judge -> the mean over the seeds with a number.

    ``cells``: the trees of `evaluation.make_row`. Spreads and denominators are in the file of each cell.
    """
    values_of_cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    for tree in cells:
        cell = tree["cell"]
        numbers = values_of_cells.setdefault((cell["dataset"], f"{cell['method']}/{cell['variant']}"), {})
        for metric, values in tree["metrics"].items():
            for judge, value in values.items():
                if value["value"] is not None:
                    numbers.setdefault(f"{metric}.{judge}".rstrip("."), []).append(value["value"])
    summary: dict[str, dict[str, dict[str, float]]] = {}
    for (dataset, name), numbers in sorted(values_of_cells.items()):
        summary.setdefault(dataset, {})[name] = {metric: fmean(values) for metric, values in numbers.items()}
    return summary
