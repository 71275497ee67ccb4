"""Writes Parquet files with one row a face: measurements and features.

`measurements` and `features_file` read them.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core import files, rehearsal
from masquerade.core.images import OK


def write(output: Path, rows: pd.DataFrame, columns: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> None:
    """Write the columns of ``rows``, then ``columns``; ``facts`` (plain JSON values) go into the file's metadata.

    Each of ``columns`` has one value, shape (N,), or one vector, shape (N, D), for each of the N rows whose status is
    ok. In the file it is bool, float64, or float32 vectors; refused rows hold a null, and NaN in a vector.
    """
    refused = (rows["status"] != OK).to_numpy()
    table = pa.Table.from_pandas(rows, preserve_index=False)
    for name, values in columns.items():
        table = table.append_column(name, _column(values, refused))
    table = table.replace_schema_metadata({"masquerade": json.dumps(rehearsal.marked(facts), sort_keys=True)})
    with files.written(output) as temporary:
        # Hardly a value repeats, so a dictionary of values takes six times as long to write and makes a larger file.
        pq.write_table(table, temporary, compression="zstd", use_dictionary=False)


def _column(values: np.ndarray, refused: np.ndarray) -> pa.Array:
    """Spreads the values of the faces that are ok over all rows. Parquet has no null among vectors of a fixed size."""
    if values.ndim == 1:
        kind = pa.bool_() if values.dtype == bool else pa.float64()
        full = np.zeros(len(refused), dtype=kind.to_pandas_dtype())
        full[~refused] = values
        return pa.array(full, type=kind, mask=refused)
    full = np.full((len(refused), values.shape[1]), np.nan, dtype=np.float32)
    full[~refused] = values
    return pa.FixedSizeListArray.from_arrays(full.reshape(-1), full.shape[1])
