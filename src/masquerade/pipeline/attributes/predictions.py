"""Reads the predictions of attributes for real test pictures (`attributes.protocol.evaluate`), without torch.

One row for each picture, attribute and kind of labels. Columns: ``labels`` (ANNOTATED, or a pseudo-labeler),
``learned_from`` (number of faces), ``id``, ``attribute``, ``label`` (bool), ``probability`` in [0, 1].
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.core.errors import ArchiveError

COLUMNS = ["labels", "learned_from", "id", "attribute", "label", "probability"]


def read(path: Path) -> pd.DataFrame:
    """The table of predictions. Raises ArchiveError if the file is missing, damaged or of another kind."""
    advice = f"Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
    try:
        return pq.read_table(path, columns=COLUMNS).to_pandas()
    except FileNotFoundError as error:
        raise ArchiveError(f"{path} is missing. {advice}") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path} is damaged, or holds no predictions of attributes ({error}). {advice}") from error
