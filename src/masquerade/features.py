"""The features that a method takes faces apart into (`Method.features`), on disk: one Parquet file a cell.

One row a face, in the order of the archive, refused ones among them. Columns: ``id``, ``identity``, ``status``,
``reason``, the annotated attributes (``attribute.<name>``), and a vector ``features.<name>`` for each feature, NaN
where the face was refused.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from masquerade import rehearsal
from masquerade.errors import ArchiveError, PictureError, ProtocolError
from masquerade.images import OK, REFUSED, FaceArchive, Faces
from masquerade.methods import Method

PREFIX = "features."
ATTRIBUTE = "attribute."
KEPT = ("id", "identity", "status", "reason")


def write(
    archive: FaceArchive, output: Path, method: Method, split: str, batch: int, facts: Mapping[str, object]
) -> None:
    """Write the features of every face of ``split``; ``facts`` (plain JSON values) say of which cell they are.

    Raises ProtocolError where the method gives no features, or others than it must.
    """
    rows = archive.select(split, status=None)
    columns = [name for name in rows if name in KEPT or name.startswith(ATTRIBUTE)]
    table = rows[columns].set_index("id", drop=False)
    seen: dict[str, dict[str, np.ndarray]] = {}
    for faces in archive.batches(batch, split):
        for part, found in _taken_apart(faces, method):
            if isinstance(found, str):
                table.loc[part.ids, ["status", "reason"]] = REFUSED, found
                continue
            for name, values in _checked(found, part, method).items():
                seen.setdefault(name, {}).update(zip(part.ids, values, strict=True))
    _save(output, table, seen, facts)


def read(path: Path) -> tuple[pd.DataFrame, dict[str, object]]:
    """The table, vectors as arrays, and the facts.

    Raises ArchiveError naming a file that is missing or damaged, RehearsalError for one of a rehearsal.
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


def _taken_apart(faces: Faces, method: Method) -> Iterator[tuple[Faces, dict[str, np.ndarray] | str]]:
    """(faces, their features), or one face and the reason why it has none."""
    try:
        yield faces, method.features(faces)
    except PictureError as error:
        if len(faces) == 1:
            yield faces, str(error)
            return
        for place in range(len(faces)):
            one = Faces(faces.images[[place]], faces.index.iloc[[place]])
            yield from _taken_apart(one, method)


def _checked(found: dict[str, np.ndarray], faces: Faces, method: Method) -> dict[str, np.ndarray]:
    module = type(method).__module__.rsplit(".", 1)[-1]
    if not found:
        raise ProtocolError(f"methods/{module}.py gives no features: no figure can show how they cluster.")
    for name, values in found.items():
        if values.dtype != np.float32 or values.ndim != 2 or len(values) != len(faces):
            raise ProtocolError(
                f"methods/{module}.py must give the feature '{name}' as float32 ({len(faces)}, D); it gave "
                f"{values.dtype} {values.shape}."
            )
    return found


def _save(
    output: Path, rows: pd.DataFrame, seen: dict[str, dict[str, np.ndarray]], facts: Mapping[str, object]
) -> None:
    """Write under a temporary name and rename."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    good = (rows["status"] == OK).to_numpy()
    for name, vectors in seen.items():
        full = np.full((len(rows), len(next(iter(vectors.values())))), np.nan, dtype=np.float32)
        full[good] = [vectors[face] for face in rows.index[good]]
        column = pa.FixedSizeListArray.from_arrays(full.reshape(-1), full.shape[1])
        table = table.append_column(PREFIX + name, column)
    table = table.replace_schema_metadata({"masquerade": json.dumps(rehearsal.marked(facts), sort_keys=True)})
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    try:
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
