"""Reads the Parquet files of measurements: one row a face, one column a quantity of a judge."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core import files, rehearsal
from masquerade.core.errors import ArchiveError


def write(frame: pd.DataFrame, output: Path) -> None:
    """Write a table as Parquet, with the metadata that `read` needs. `face_tables` writes the judges' measurements."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({"masquerade": json.dumps(rehearsal.marked({}))})
    with files.written(output) as temporary:
        pq.write_table(table, temporary)


def read(path: Path) -> pd.DataFrame:
    """The measurements as a table: scalars as float64 (true is 1, false is 0), vectors as float32 arrays (D,).

    A value that was not measured is NaN. Raises ArchiveError if the file is missing or damaged, RehearsalError if only
    a rehearsal may read it.
    """
    try:
        table = pq.read_table(path)
        if b"masquerade" not in (table.schema.metadata or {}):
            raise ArchiveError(f"{path} is not a measurements file. Build it with `snakemake {path}`.")
        rehearsal.admit(json.loads(table.schema.metadata[b"masquerade"]), path)
        for position, field in enumerate(table.schema):
            if pa.types.is_boolean(field.type):
                numbers = table[field.name].cast(pa.int8()).cast(pa.float64())
                table = table.set_column(position, field.name, numbers)
        return table.to_pandas()
    except FileNotFoundError as error:
        raise ArchiveError(
            f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`."
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(
            f"{path} is damaged ({error}). Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
        ) from error


def size(path: Path) -> int | None:
    """The side of the measured pictures in pixels, or None if every face was refused.

    Raises ArchiveError if the file does not give it.
    """
    return _fact(path, "size", "size of its pictures")


def statement(path: Path) -> dict[str, Any]:
    """What the method of the pictures states about itself. Raises ArchiveError if the file does not give it."""
    return _fact(path, "statement", "statement of its method")


def _fact(path: Path, name: str, words: str) -> Any:
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
