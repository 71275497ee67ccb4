"""Reads the Parquet files of features: one row a face, one column of vectors for each feature of a method."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core import rehearsal
from masquerade.core.errors import ArchiveError

PREFIX = "features."
"""Prefix of the columns of vectors."""


def read(path: Path) -> tuple[pd.DataFrame, dict[str, object]]:
    """The table, with vectors as float32 arrays (D,), and the facts that the file's writer gave.

    Raises ArchiveError if the file is missing or damaged, RehearsalError if only a rehearsal may read it.
    """
    advice = f"Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
    try:
        table = pq.read_table(path)
        facts = json.loads(table.schema.metadata[b"masquerade"])
        rehearsal.admit(facts, path)
        return table.to_pandas(), facts
    except FileNotFoundError as error:
        raise ArchiveError(f"{path} is missing. {advice}") from error
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(f"{path} is damaged, or holds no features ({error}). {advice}") from error
