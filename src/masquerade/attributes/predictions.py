"""What the classifiers of attributes said of real test pictures (`attributes.protocol.evaluate`), read without torch.

One row a picture, attribute and kind of labels. Columns: ``labels`` (KNOWN, or the pseudo-labeller that gave them),
``learnt_from`` (how many faces), ``id``, ``attribute``, ``label`` (bool), ``probability`` in [0, 1].
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade.errors import ArchiveError

KNOWN = "annotated"
COLUMNS = ["labels", "learnt_from", "id", "attribute", "label", "probability"]


def read(path: Path) -> pd.DataFrame:
    """The table. Raises ArchiveError naming a file that is missing, damaged or another one."""
    advice = f"Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
    try:
        return pq.read_table(path, columns=COLUMNS).to_pandas()
    except FileNotFoundError as error:
        raise ArchiveError(f"{path} is missing. {advice}") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path} is damaged, or holds no predictions of attributes ({error}). {advice}") from error
