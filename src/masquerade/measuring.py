"""Lets every judge look at every picture of a set once, and keeps what they saw in one Parquet file.

One row a face, in the order of the archive; refused faces keep their row with nothing measured. Columns: what the
index says of the face (id, identity, split, status, reason, source_id, ...), then ``<judge>.<quantity>``. A set of
originals keeps its annotations too: ``attribute.<name>``, as in its index.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from masquerade import rehearsal
from masquerade.errors import ArchiveError, ProtocolError
from masquerade.images import OK, FaceArchive
from masquerade.judges import Judge

KEPT = ("id", "identity", "split", "status", "reason", "source_id", "method", "variant", "key_id", "seed", "attempt",
        "number", "fold", "pairs")  # fmt: skip
"""Columns of the index that the measurements repeat, where it has them."""

ANNOTATION = "attribute."
"""Before the name of what is known of a face. Of originals alone, and only what is true or false, is it repeated."""


def measure(
    archive: Path,
    output: Path,
    judges: Mapping[str, Judge],
    split: str | Sequence[str] | None = None,
    batch: int = 32,
    source: Path | None = None,
    threads: int = 1,
    progress: bool = True,
) -> None:
    """Measure ``archive`` (all of it, one split, or several) and write ``output``, which appears only when complete.

    ``source``: the archive of the pictures that these were derived from, matched by ``source_id``, or by ``id`` where
    the index has none; judges get them as the reference. Without it, these are originals. At most ``batch`` pictures
    (and as many references) are in memory at a time. ``threads``: CPU threads of PyTorch and OpenCV while this runs.
    ``progress``: show a bar when standard error is a terminal.

    Raises ArchiveError where an archive is damaged or lacks a reference, ProtocolError where a judge breaks its word.
    """
    faces = FaceArchive(archive)
    references = References(source) if source is not None else None
    rows = faces.index
    if split is not None:
        rows = rows[rows["split"].isin([split] if isinstance(split, str) else list(split))]
    measured = rows[rows["status"] == OK]
    seen: dict[str, list[np.ndarray]] = {}
    side = None
    with held_to(threads), tqdm(total=len(measured), unit="face", disable=None if progress else True) as bar:
        for part in faces.batches(batch, rows=measured):
            side = part.images.shape[-1]
            reference = references.of(part.index, part.images.shape) if references else None
            for name, judge in judges.items():
                for quantity, values in _checked(name, judge, part.images, reference).items():
                    seen.setdefault(f"{name}.{quantity}", []).append(values)
            bar.update(len(part))
    if measured.empty:  # every face was refused: the columns are there all the same
        seen = {f"{name}.{key}": [np.empty((0, *shape))] for name, judge in judges.items()
                for key, shape in judge.quantities.items()}  # fmt: skip
    uneven = [column for column, parts in seen.items() if sum(map(len, parts)) != len(measured)]
    if uneven:
        raise ProtocolError(f"{uneven[0]} was measured for some batches of {archive} and not for others.")
    kept = [column for column in KEPT if column in rows] + (annotations(rows) if references is None else [])
    _write(output, rows[kept], seen, facts(judges) | {"archive": faces.facts["checksum"], "size": side})


def annotations(rows: pd.DataFrame) -> list[str]:
    """The columns of an index, or of measurements, that say of every face whether an attribute is true."""
    return [name for name in rows if name.startswith(ANNOTATION) and rows[name].dtype == bool]


def read(path: Path) -> pd.DataFrame:
    """The measurements as a table, NaN where nothing was measured.

    Raises ArchiveError naming a damaged file, RehearsalError for one of a rehearsal.

    Scalars are float64 (a detection is 1 or 0), vectors float32 arrays.
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
    """The side of the pictures that were measured, in pixels; None where every one was refused. Raises ArchiveError."""
    try:
        return json.loads(pq.read_schema(path).metadata[b"masquerade"])["size"]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(
            f"{path} does not say the size of its pictures. Build it again: `snakemake {path}`."
        ) from error


def facts(judges: Mapping[str, Judge]) -> dict[str, object]:
    """Who judged, with which parameters and which versions of their packages: plain JSON values."""
    return {
        "judges": {
            name: {
                "source": judge.source,
                "params": judge.params.model_dump(mode="json"),
                "packages": {package: version(package) for package in judge.packages},
            }
            for name, judge in judges.items()
        }
    }


class References:
    """The pictures that a derived set came from, found by their ids."""

    def __init__(self, archive: Path):
        self._archive = FaceArchive(archive)
        self._rows = self._archive.select().set_index("id", drop=False)

    def of(self, index: pd.DataFrame, shape: tuple[int, ...]) -> np.ndarray:
        """float32 (N, 3, H, W): the sources of N faces in their order. Raises ArchiveError naming one that is lost."""
        wanted = index["source_id" if "source_id" in index else "id"]
        lost = wanted[~wanted.isin(self._rows.index)]
        if len(lost):
            raise ArchiveError(f"{self._archive.path} has no picture '{lost.iloc[0]}', which was to be the reference.")
        images = self._archive.load(rows=self._rows.loc[wanted]).images
        if images.shape != shape:
            raise ArchiveError(
                f"{self._archive.path} holds pictures of {images.shape[-2:]} pixels, not of {shape[-2:]} as its "
                "derived set; both must have the same image.size."
            )
        return images


def _checked(name: str, judge: Judge, images: np.ndarray, reference: np.ndarray | None) -> dict[str, np.ndarray]:
    """What the judge measured, held to its own ``quantities``. Raises ProtocolError naming it."""
    values = judge.measure(images, reference)
    unknown = set(values) - set(judge.quantities)
    missing = set(judge.quantities) - set(values) if reference is not None else set()
    if unknown or missing:
        what = f"does not declare {sorted(unknown)}" if unknown else f"did not measure {sorted(missing)}"
        raise ProtocolError(f"The judge '{name}' {what}; it declares {sorted(judge.quantities)}.")
    for quantity, array in values.items():
        shape = (len(images), *judge.quantities[quantity])
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ProtocolError(
                f"The judge '{name}' must give '{quantity}' as an array of shape {shape}, not {np.shape(array)}."
            )
        if array.dtype != bool and not np.issubdtype(array.dtype, np.floating):
            raise ProtocolError(f"The judge '{name}' must give '{quantity}' as bool or float, not {array.dtype}.")
    return values


@contextmanager
def held_to(number: int) -> Iterator[None]:
    """Hold PyTorch and OpenCV, where a judge has loaded them, to ``number`` threads; afterwards as it was before."""
    with ExitStack() as restored:
        if torch := sys.modules.get("torch"):
            restored.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(number)
        if cv2 := sys.modules.get("cv2"):
            restored.callback(cv2.setNumThreads, cv2.getNumThreads())
            cv2.setNumThreads(number)
        yield


def _write(output: Path, rows: pd.DataFrame, seen: Mapping[str, list[np.ndarray]], told: Mapping[str, object]) -> None:
    """Write under a temporary name and rename."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    refused = (rows["status"] != OK).to_numpy()
    for column, parts in seen.items():
        table = table.append_column(column, _column(np.concatenate(parts), refused))
    table = table.replace_schema_metadata({"masquerade": json.dumps(rehearsal.marked(told), sort_keys=True)})
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    try:
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def _column(values: np.ndarray, refused: np.ndarray) -> pa.Array:
    """Values of the faces that are ok, spread over all rows; where ``refused``, a null, and in a vector NaN.

    (Parquet cannot hold a null among vectors of a fixed size.)
    """
    if values.ndim == 1:
        kind = pa.bool_() if values.dtype == bool else pa.float64()
        full = np.zeros(len(refused), dtype=kind.to_pandas_dtype())
        full[~refused] = values
        return pa.array(full, type=kind, mask=refused)
    full = np.full((len(refused), values.shape[1]), np.nan, dtype=np.float32)
    full[~refused] = values
    return pa.FixedSizeListArray.from_arrays(full.reshape(-1), full.shape[1])
