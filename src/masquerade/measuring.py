"""One pass of all judges over one set of faces; the result is one Parquet file, a row a face, in archive order.

Columns: those of the index that say which face it is (id, identity, split, status, reason, source_id, key_id), then
``<judge>.<quantity>``: a number, a truth value, or a fixed-size list of float32. Rows of refused faces hold nulls.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from masquerade.errors import ArchiveError, ProtocolError
from masquerade.images import FaceArchive
from masquerade.judges import Judge

WHO = ("id", "identity", "split", "status", "reason", "source_id", "key_id")


def measure(
    archive: Path,
    output: Path,
    judges: Mapping[str, Judge],
    splits: Sequence[str],
    batch: int,
    source: Path | None = None,
) -> None:
    """Let every judge look once at the faces of ``archive`` in ``splits``, and write ``output``.

    ``source``: the archive of the pictures from which these were derived (matched by ``source_id``), for the quantities
    that compare. Only one batch of pictures is in memory. Raises ArchiveError where a source is missing, and
    ProtocolError naming a judge that does not keep its protocol.
    """
    faces = FaceArchive(archive)
    rows = faces.select(status=None)
    rows = rows[rows["split"].isin(splits)]
    good = rows[rows["status"] == "ok"]
    originals = FaceArchive(source) if source else None
    seen: dict[str, list[np.ndarray]] = {}
    for part in tqdm(faces.batches(batch, rows=good), total=-(-len(good) // batch), desc="measuring", mininterval=5):
        reference = _sources(originals, part.index["source_id"]) if originals else None
        for name, judge in judges.items():
            for quantity, values in _checked(name, judge, part.images, reference).items():
                seen.setdefault(f"{name}.{quantity}", []).append(values)
    where = np.flatnonzero((rows["status"] == "ok").to_numpy())
    columns = {name: pa.array(rows[name].tolist()) for name in WHO if name in rows}
    columns |= {name: _column(np.concatenate(parts), where, len(rows)) for name, parts in sorted(seen.items())}
    facts = {
        "archive": faces.facts["checksum"],
        "judges": {name: judge.source for name, judge in judges.items()},
        "versions": {name: version(name) for name in ("dlib-bin", "numpy", "opencv-python-headless", "torch")},
    }
    _write(pa.table(columns).replace_schema_metadata({"masquerade": json.dumps(facts, sort_keys=True)}), output)


def _sources(originals: FaceArchive, names: pd.Series) -> np.ndarray:
    known = originals.index.set_index("id", drop=False)
    lost = [name for name in names if name not in known.index]
    if lost:
        raise ArchiveError(f"{originals.path} does not hold {lost[0]}, of which a face was derived.")
    return originals.load(rows=known.loc[names]).images


def _checked(name: str, judge: Judge, images: np.ndarray, reference: np.ndarray | None) -> dict[str, np.ndarray]:
    """What a judge says of a batch, held to what it promises in ``quantities``."""
    said = judge.measure(images, reference)
    unknown = set(said) - set(judge.quantities)
    if unknown:
        raise ProtocolError(f"judge '{name}' returned {sorted(unknown)}, which its quantities do not name.")
    for quantity, values in said.items():
        wanted = (len(images), *judge.quantities[quantity])
        if not isinstance(values, np.ndarray) or values.shape != wanted or values.dtype.kind not in "fb":
            given = (values.shape, values.dtype) if isinstance(values, np.ndarray) else type(values).__name__
            raise ProtocolError(f"judge '{name}' must return {quantity} as an array {wanted}, not {given}.")
    return said


def _column(values: np.ndarray, where: np.ndarray, count: int) -> pa.Array:
    """The values of the faces at ``where`` among ``count`` rows, null elsewhere."""
    absent = np.ones(count, bool)
    absent[where] = False
    if values.ndim == 1:
        full = np.zeros(count, bool if values.dtype.kind == "b" else np.float64)
        full[where] = values
        return pa.array(full, mask=absent)
    full = np.full((count, values.shape[1]), np.nan, np.float32)
    full[where] = values
    flat = pa.array(full.ravel())
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=pa.array(absent))


def _write(table: pa.Table, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    try:
        pq.write_table(table, temporary)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> pd.DataFrame:
    """Measurements as a table. Raises ArchiveError naming a file that is missing or damaged."""
    if not Path(path).is_file():
        raise ArchiveError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
    try:
        return pq.read_table(path).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path} is damaged ({error}). Delete it and run `snakemake {path}` again.") from error
