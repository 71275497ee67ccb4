"""The image contract, and the archive that holds a set of faces.

In memory a set of pictures is float32 RGB in [-1, 1], shape (N, 3, H, W). On disk it is one uncompressed zip of
8-bit PNGs and, beside it under the same name, one Parquet index with a row a face in the same order.
"""

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from masquerade import rehearsal
from masquerade.errors import ArchiveError

OK, REFUSED = "ok", "refused"
EMPTY = ["id", "identity", "split", "status", "reason", "source_id"]  # columns of an index without a row
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # the same pictures give the same bytes


def to_float(pictures: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W, 3) or (H, W, 3) in 0..255 -> float32 (N, 3, H, W) or (3, H, W) in [-1, 1]."""
    return np.ascontiguousarray(np.moveaxis(pictures, -1, -3), dtype=np.float32) / 127.5 - 1.0


def to_uint8(images: np.ndarray) -> np.ndarray:
    """float32 (N, 3, H, W) or (3, H, W) in [-1, 1] -> uint8 (N, H, W, 3) or (H, W, 3); values outside are clipped."""
    scaled = np.rint((np.clip(images, -1.0, 1.0) + 1.0) * 127.5)
    return np.ascontiguousarray(np.moveaxis(scaled, -3, -1)).astype(np.uint8)


@dataclass(frozen=True)
class Faces:
    """A batch of faces: ``images`` float32 (N, 3, H, W) in [-1, 1] and their N rows of the ``index``."""

    images: np.ndarray
    index: pd.DataFrame

    def __len__(self) -> int:
        return len(self.images)

    @property
    def ids(self) -> list[str]:
        return self.index["id"].tolist()

    @property
    def landmarks(self) -> np.ndarray:
        """float32 (N, 68, 2): x, y in pixels, in the order of the iBUG 68 points; NaN where they are not known."""
        unknown = np.full(136, np.nan, dtype=np.float32)
        column = self.index["landmarks"] if "landmarks" in self.index else [None] * len(self.index)
        rows = [unknown if row is None or np.size(row) != 136 else np.asarray(row) for row in column]
        return np.stack(rows).astype(np.float32).reshape(-1, 68, 2) if rows else np.empty((0, 68, 2), np.float32)


def index_path(archive: Path) -> Path:
    """Where the index of ``archive`` (a .zip) lies."""
    return Path(archive).with_suffix(".parquet")


class ArchiveWriter:
    """Writes an archive one face at a time; both files appear under their names only when all is well.

    Use as a context manager. ``add`` takes the picture as uint8 (H, W, 3), or None for a refused one (the row then
    needs ``status='refused'`` and a ``reason``), and optionally its parsing mask, uint8 (H, W).
    """

    def __init__(self, archive: Path, facts: Mapping[str, object] | None = None):
        self.archive = Path(archive)
        self.facts = dict(facts or {})
        self.rows: list[dict] = []

    def __enter__(self) -> "ArchiveWriter":
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{self.archive.stem}.", suffix=".zip.part", dir=self.archive.parent)
        os.close(handle)
        self._temporary = Path(name)
        self._zip = zipfile.ZipFile(self._temporary, "w", zipfile.ZIP_STORED)
        return self

    def add(self, picture: np.ndarray | None, row: Mapping[str, object], mask: np.ndarray | None = None) -> None:
        row = {"status": OK, "reason": "", **row}
        if (picture is None) != (row["status"] == REFUSED):
            raise ArchiveError(f"{row['id']}: a face is either a picture with status ok or a refusal without one.")
        if row["status"] == REFUSED and not row["reason"]:
            raise ArchiveError(f"{row['id']}: a refusal needs a reason.")
        self.rows.append(row)
        if picture is not None:
            self._store(f"faces/{row['id']}.png", picture)
        if mask is not None:
            self._store(f"masks/{row['id']}.png", mask)

    def _store(self, name: str, pixels: np.ndarray) -> None:
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
        self._zip.writestr(zipfile.ZipInfo(name, _FIXED_DATE), buffer.getvalue())

    def __exit__(self, kind, error, trace) -> None:
        self._zip.close()
        if kind is not None:
            self._temporary.unlink()
            return
        index = index_path(self.archive)
        temporary_index = index.with_name(f".{index.name}.part")
        try:
            rows = pd.DataFrame(self.rows, columns=None if self.rows else EMPTY, dtype=None if self.rows else str)
            table = pa.Table.from_pandas(rows, preserve_index=False)
            facts = json.dumps(rehearsal.marked({**self.facts, "checksum": _checksum(self._temporary)}), sort_keys=True)
            table = table.replace_schema_metadata({"masquerade": facts})
            pq.write_table(table, temporary_index, write_page_checksum=True)
            temporary_index.replace(index)
            self._temporary.chmod(0o644)
            self._temporary.replace(self.archive)
        finally:
            with suppress(FileNotFoundError):
                self._temporary.unlink()
            with suppress(FileNotFoundError):
                temporary_index.unlink()


def _checksum(archive: Path) -> str:
    """A digest of names and CRCs from the zip's directory: cheap, and ties the index to its pictures."""
    with zipfile.ZipFile(archive) as entries:
        listing = "\n".join(f"{entry.filename} {entry.CRC:08x}" for entry in entries.infolist())
    return hashlib.sha256(listing.encode()).hexdigest()


def index_facts(index: Path) -> dict:
    """What the writer said of the whole set, from its index alone. Raises ArchiveError naming a damaged file."""
    try:
        return json.loads(pq.read_schema(index).metadata[b"masquerade"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(_damaged(index, error)) from error


class FaceArchive:
    """A set of faces on disk, read in batches; memory does not grow with the set.

    Raises ArchiveError, naming the file, where it is missing, cut, altered, or not the one that its index describes;
    RehearsalError where a rehearsal made it.
    """

    def __init__(self, archive: Path):
        self.path = Path(archive)
        for path in (self.path, index_path(self.path)):
            if not path.is_file():
                raise ArchiveError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        self.facts = index_facts(index_path(self.path))
        rehearsal.admit(self.facts, self.path)
        try:
            self.index: pd.DataFrame = pq.read_table(index_path(self.path), page_checksum_verification=True).to_pandas()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(_damaged(index_path(self.path), error)) from error
        try:
            checksum = _checksum(self.path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ArchiveError(_damaged(self.path, error)) from error
        if checksum != self.facts.get("checksum"):
            raise ArchiveError(_damaged(self.path, "its pictures are not those of its index"))

    def __len__(self) -> int:
        return len(self.index)

    def select(self, split: str | None = None, status: str | None = OK) -> pd.DataFrame:
        """The rows of one split (None: all) with one status (None: all), in archive order."""
        rows = self.index
        if split is not None:
            rows = rows[rows["split"] == split]
        return rows if status is None else rows[rows["status"] == status]

    def batches(self, size: int, split: str | None = None, rows: pd.DataFrame | None = None) -> Iterator[Faces]:
        """Batches of at most ``size`` faces that are ok, of a split or of the given rows of the index."""
        rows = self.select(split) if rows is None else rows
        with zipfile.ZipFile(self.path) as entries:
            for start in range(0, len(rows), size):
                part = rows.iloc[start : start + size]
                yield Faces(to_float(np.stack([self._read(entries, "faces", name) for name in part["id"]])), part)

    def load(self, split: str | None = None, rows: pd.DataFrame | None = None) -> Faces:
        """All faces that are ok, of a split or of the given rows, as one batch in memory."""
        rows = self.select(split) if rows is None else rows
        if rows.empty:
            raise ArchiveError(f"{self.path} holds no usable face{f' in split {split}' if split else ''}.")
        return next(self.batches(len(rows), rows=rows))

    def masks(self, rows: pd.DataFrame) -> np.ndarray:
        """Parsing masks of the given rows, uint8 (N, H, W)."""
        with zipfile.ZipFile(self.path) as entries:
            return np.stack([self._read(entries, "masks", name) for name in rows["id"]])

    def _read(self, entries: zipfile.ZipFile, folder: str, name: str) -> np.ndarray:
        try:
            with Image.open(io.BytesIO(entries.read(f"{folder}/{name}.png"))) as picture:
                return np.asarray(picture)
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise ArchiveError(_damaged(self.path, f"{folder}/{name}.png: {error}")) from error


def _damaged(path: Path, why: object) -> str:
    return f"{path} is damaged ({why}). Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
