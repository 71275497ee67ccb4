"""Parquet files with one row a face: what judges measure, what attackers answer, and the features of methods.

``dlib_face.embedding`` below stands for every vector, ``dlib_face.detected`` for every number. The metadata hold what
is true of the whole file::

    id         status   dlib_face.detected   dlib_face.embedding      metadata: {"size": 256, "statement": {...}}
    0001       ok       True                 [0.12, -0.03, ...]
    0002       refused  null                 [NaN, NaN, ...]
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core import files, rehearsal
from masquerade.core.errors import ArchiveError
from masquerade.core.images import OK

FEATURES = "features."
"""Prefix of the columns with the features of a method."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


def write_table(
    rows: pd.DataFrame,
    output: Path,
    columns: Mapping[str, np.ndarray] = NOTHING,
    metadata: Mapping[str, object] = NOTHING,
) -> None:
    """Write ``rows``, then ``columns``; ``metadata`` (plain JSON values) are kept beside them.

    Each of ``columns`` has one value, shape (N,), or one vector, shape (N, D), for each of the N rows whose status is
    ok. In the file it is bool, float64, or float32 vectors; refused rows hold a null, and NaN in a vector.
    """
    table = pa.Table.from_pandas(rows, preserve_index=False)
    for name, values in columns.items():
        table = table.append_column(name, _make_column(values, (rows["status"] != OK).to_numpy()))
    table = table.replace_schema_metadata({"masquerade": json.dumps(rehearsal.mark(metadata), sort_keys=True)})
    # Hardly a value of a vector repeats: a dictionary of values takes six times as long and makes a larger file.
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": False} if columns else {}
    with files.write_atomically(output) as temporary:
        pq.write_table(table, temporary, **options)


def _make_column(values: np.ndarray, refused: np.ndarray) -> pa.Array:
    """Spread the values of the faces that are ok over all rows. Parquet has no null among vectors of a fixed size."""
    if values.ndim == 1:
        kind = pa.bool_() if values.dtype == bool else pa.float64()
        full = np.zeros(len(refused), dtype=kind.to_pandas_dtype())
        full[~refused] = values
        return pa.array(full, type=kind, mask=refused)
    full = np.full((len(refused), values.shape[1]), np.nan, dtype=np.float32)
    full[~refused] = values
    return pa.FixedSizeListArray.from_arrays(full.reshape(-1), full.shape[1])


def read(path: Path) -> pd.DataFrame:
    """The measurements as a table: scalars as float64 (true is 1, false is 0), vectors as float32 arrays (D,).

    A value that was not measured is NaN. Raises ArchiveError if the file is missing or damaged, RehearsalError if only
    a rehearsal may read it.
    """
    table = _read(path)[0]
    for position, field in enumerate(table.schema):
        if pa.types.is_boolean(field.type):
            numbers = table[field.name].cast(pa.int8()).cast(pa.float64())
            table = table.set_column(position, field.name, numbers)
    return table.to_pandas()


def read_features(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The features of faces, with vectors as float32 arrays (D,), and the metadata. Raises as `read`."""
    table, metadata = _read(path)
    return table.to_pandas(), metadata


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    try:
        table = pq.read_table(path)
        metadata = json.loads((table.schema.metadata or {})[b"masquerade"])
    except FileNotFoundError as error:
        raise ArchiveError(
            f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`."
        ) from error
    except KeyError as error:
        raise ArchiveError(f"{path} is not a file of Masquerade. Build it with `snakemake {path}`.") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ArchiveError(
            f"{path} is damaged ({error}). Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
        ) from error
    rehearsal.admit(metadata, path)
    return table, metadata


def read_size(path: Path) -> int | None:
    """The side of the measured images in pixels, or None if every face was refused.

    Raises ArchiveError if the file does not give it.
    """
    return _read_metadata(path, "size", "size of its images")


def read_statement(path: Path) -> dict[str, Any]:
    """What the method of the images states about itself. Raises ArchiveError if the file does not give it."""
    return _read_metadata(path, "statement", "statement of its method")


def _read_metadata(path: Path, name: str, words: str) -> Any:
    try:
        return json.loads(pq.read_schema(path).metadata[b"masquerade"])[name]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(f"{path} does not give the {words}. Build it again: `snakemake {path}`.") from error


def stack(column: pd.Series) -> np.ndarray:
    """A column of measurements as float64, shape (N,) or (N, D); a missing value is NaN."""
    if column.dtype != object:
        return column.to_numpy(dtype=np.float64)
    width = max((np.size(value) for value in column if value is not None), default=1)
    missing = np.full(width, np.nan)
    return np.stack([missing if value is None else np.asarray(value, dtype=np.float64) for value in column])
