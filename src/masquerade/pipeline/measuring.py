"""Measures every image of a set once with every judge, or separates it into a method's features: one Parquet file.

One row for each face, in the order of the archive. The row of a refused face has no measurements. Columns: some of the
index (id, identity, split, status, reason, source_id, ...), then ``<judge>.<quantity>``. A set of originals also keeps
its annotations, ``attribute.<name>``:

    id      split  status   reason            dlib_face.embedding  pixels.psnr
    p3_0    test   ok                         [0.03, -0.11, ...]   17.2
    p3_1    test   refused  no face was found [nan, nan, ...]      nan

The table of a method's features (`write_features`) has vectors ``features.<name>`` instead.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from masquerade.core import discovery, face_tables
from masquerade.core.annotations import ANNOTATION, list_annotation_columns
from masquerade.core.errors import ArchiveError, ProtocolError
from masquerade.core.face_tables import FEATURES
from masquerade.core.images import OK, REFUSED, FaceArchive, Faces
from masquerade.judges import Judge
from masquerade.methods import Method
from masquerade.pipeline.anonymization import Refusal, apply_or_refuse, select_subset

KEPT = ("id", "identity", "split", "status", "reason", "source_id", "method", "variant", "key_id", "seed", "attempt",
        "number", "fold", "pairs")  # fmt: skip
"""Columns of the index that are kept, if the index has them."""


def measure(
    archive: Path,
    output: Path,
    judges: Mapping[str, Judge],
    parts: Sequence[str] | None = None,
    batch: int = 32,
    source: Path | None = None,
    most: int = 0,
) -> None:
    """Measure ``archive`` and write ``output``, which appears only when complete.

    ``parts``: splits, or groups of people of the train split; None: all of the archive. ``most``: at most so many faces
    (`anonymization.select_subset`), 0 for all.
    ``source``: the archive with the sources of these images, which judges get as the reference. They are matched by
    ``source_id``, or by ``id`` if the index has no ``source_id``. None: these are originals. At most ``batch`` images
    (and as many references) are in memory at a time. PyTorch and OpenCV use
    one thread of the CPU during the call.

    Raises ArchiveError if an archive is damaged or lacks a reference, and ProtocolError if a judge does not measure
    what it declares.
    """
    faces = FaceArchive(archive)
    references = References(source) if source is not None else None
    rows = select_subset(pd.concat([faces.select(part, status=None) for part in parts or [None]]).sort_index(), most)
    measured = rows[rows["status"] == OK]
    values_of: dict[str, list[np.ndarray]] = {}
    side = None
    with limit_threads(1), tqdm(total=len(measured), unit="face", disable=None) as bar:
        for loaded in faces.batches(batch, rows=measured):
            side = loaded.images.shape[-1]
            reference = references.of(loaded.index, loaded.images.shape) if references else None
            for name, judge in judges.items():
                for quantity, values in _check_measurements(name, judge, loaded.images, reference).items():
                    values_of.setdefault(f"{name}.{quantity}", []).append(values)
            bar.update(len(loaded))
    if measured.empty:  # every face was refused: write the same columns
        values_of = {f"{name}.{key}": [np.empty((0, *shape))] for name, judge in judges.items()
                for key, shape in judge.quantities.items()}  # fmt: skip
    inherited = [column for column in KEPT if column in rows]
    if references is None:
        inherited += list_annotation_columns(rows)
    columns = {column: np.concatenate(arrays) for column, arrays in values_of.items()}
    of_archive = {"archive": faces.metadata["checksum"], "size": side, "statement": faces.metadata.get("statement", {})}
    face_tables.write_table(rows[inherited], output, columns, facts(judges) | of_archive)


def facts(judges: Mapping[str, Judge]) -> dict[str, object]:
    """Source, parameters and package versions of each judge: plain JSON values."""
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
    """The sources of a derived set, by their ids."""

    def __init__(self, archive: Path):
        self._archive = FaceArchive(archive)
        self._rows = self._archive.select().set_index("id", drop=False)

    def of(self, index: pd.DataFrame, shape: tuple[int, ...]) -> np.ndarray:
        """The sources of N faces in their order: float32 (N, 3, H, W).

        Raises ArchiveError naming a missing one, or if they do not have ``shape``.
        """
        names = index["source_id" if "source_id" in index else "id"]
        missing = names[~names.isin(self._rows.index)]
        if len(missing):
            raise ArchiveError(
                f"{self._archive.path} has no image '{missing.iloc[0]}', which is needed as the reference. Build "
                "both archives again with `snakemake`."
            )
        images = self._archive.load(rows=self._rows.loc[names]).images
        if images.shape != shape:
            raise ArchiveError(
                f"{self._archive.path} holds images of {images.shape[-2:]} pixels, and its derived set images of "
                f"{shape[-2:]}. Build both with the same image.size."
            )
        return images


def _check_measurements(
    name: str, judge: Judge, images: np.ndarray, reference: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The judge's measurements. Raises ProtocolError naming the judge if they differ from its ``quantities``."""
    values = judge.measure(images, reference)
    unknown = set(values) - set(judge.quantities)
    missing = set(judge.quantities) - set(values) if reference is not None else set()
    if unknown or missing:
        what = f"does not declare {sorted(unknown)}" if unknown else f"did not measure {sorted(missing)}"
        raise ProtocolError(f"The judge '{name}' {what}. It declares {sorted(judge.quantities)}.")
    for quantity, array in values.items():
        shape = (len(images), *judge.quantities[quantity])
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ProtocolError(
                f"The judge '{name}' must give '{quantity}' as an array of shape {shape}, not {np.shape(array)}."
            )
        if array.dtype != bool and not np.issubdtype(array.dtype, np.floating):
            raise ProtocolError(f"The judge '{name}' must give '{quantity}' as bool or float, not {array.dtype}.")
    return values


def write_features(
    archive: FaceArchive, output: Path, method: Method, split: str, batch: int, metadata: Mapping[str, object]
) -> None:
    """Write the features of every face of ``split``, NaN for a refused one. ``metadata``: the cell.

    Raises ProtocolError if the method gives no features, or features of a wrong type or shape.
    """
    rows = archive.select(split, status=None)
    index = [name for name in rows if name in ("id", "identity", "status", "reason") or name.startswith(ANNOTATION)]
    table = rows[index].set_index("id", drop=False)
    vectors: dict[str, dict[str, np.ndarray]] = {}
    for faces in archive.batches(batch, split):
        for part, features in apply_or_refuse(method.features, faces):
            if isinstance(features, Refusal):
                table.loc[part.ids, ["status", "reason"]] = REFUSED, features.reason
                continue
            for name, values in _check_features(features, part, method).items():
                vectors.setdefault(name, {}).update(zip(part.ids, values, strict=True))
    faces_with_features = table.index[table["status"] == OK]
    columns = {
        FEATURES + name: np.stack([by_face[face] for face in faces_with_features]) for name, by_face in vectors.items()
    }
    face_tables.write_table(table, output, columns, metadata)


def _check_features(features: dict[str, np.ndarray], faces: Faces, method: Method) -> dict[str, np.ndarray]:
    module = discovery.find_name(type(method))
    if not features:
        raise ProtocolError(f"methods/{module}.py gives no features, and a figure of its clusters needs some.")
    for name, values in features.items():
        if values.dtype != np.float32 or values.ndim != 2 or len(values) != len(faces):
            raise ProtocolError(
                f"methods/{module}.py must give the feature '{name}' as float32 ({len(faces)}, D); it gave "
                f"{values.dtype} {values.shape}."
            )
    return features


@contextmanager
def limit_threads(number: int) -> Iterator[None]:
    """Inside the block PyTorch and OpenCV use ``number`` threads, if they are loaded. Afterwards as many as before."""
    with ExitStack() as restored:
        if torch := sys.modules.get("torch"):
            restored.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(number)
        if cv2 := sys.modules.get("cv2"):
            restored.callback(cv2.setNumThreads, cv2.getNumThreads())
            cv2.setNumThreads(number)
        yield
