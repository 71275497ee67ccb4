"""The image contract, and the archive that holds a set of faces.

In memory a set of images is float32 RGB in [-1, 1], shape (N, 3, H, W). On disk it is one uncompressed zip of
8-bit PNGs and, beside it under the same name, one Parquet index with a row a face in the same order.
"""

import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from masquerade.core import files, people, rehearsal
from masquerade.core.errors import ArchiveError, PictureError

OK, REFUSED = "ok", "refused"
TEST, GALLERY = "test", "gallery"
"""The split whose images are anonymized, and that of further images of the same people, which an attacker knows. Some
of the latter are anonymized, too, for attackers who link images."""
EMPTY = ["id", "identity", "split", "status", "reason", "source_id"]  # columns of an index without a row
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # the same images give the same bytes


def to_float(pictures: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W, 3) or (H, W, 3) in 0..255 -> float32 (N, 3, H, W) or (3, H, W) in [-1, 1]."""
    return np.ascontiguousarray(np.moveaxis(pictures, -1, -3), dtype=np.float32) / 127.5 - 1.0


def to_uint8(images: np.ndarray) -> np.ndarray:
    """float32 (N, 3, H, W) or (3, H, W) in [-1, 1] -> uint8 (N, H, W, 3) or (H, W, 3); values outside are clipped."""
    scaled = np.rint((np.clip(images, -1.0, 1.0) + 1.0) * 127.5)
    return np.ascontiguousarray(np.moveaxis(scaled, -3, -1)).astype(np.uint8)


def check_size(images: np.ndarray, size: int, user: str = "this network takes") -> None:
    """Raises PictureError if images (N, 3, H, W) do not have ``size`` pixels a side."""
    height, width = images.shape[-2:]
    if (height, width) != (size, size):
        raise PictureError(f"is {width} x {height} pixels; {user} {size} x {size}")


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
        """float32 (N, 68, 2): x, y in pixels, in the order of the iBUG 68 points; NaN if unknown."""
        unknown = np.full(136, np.nan, dtype=np.float32)
        column = self.index["landmarks"] if "landmarks" in self.index else [None] * len(self.index)
        rows = [unknown if row is None or np.size(row) != 136 else np.asarray(row) for row in column]
        return np.stack(rows).astype(np.float32).reshape(-1, 68, 2) if rows else np.empty((0, 68, 2), np.float32)


def index_path(archive: Path) -> Path:
    """The path of the index of ``archive`` (a .zip)."""
    return Path(archive).with_suffix(".parquet")


class MemoryArchive:
    """An archive in memory, to be given in place of a path: for faces that no file may hold."""

    def __init__(self) -> None:
        self.pictures, self.index = io.BytesIO(), io.BytesIO()


def _parts(archive: Path | MemoryArchive) -> tuple[Path, Path] | tuple[io.BytesIO, io.BytesIO]:
    """Where the images of an archive are, and where its index is."""
    if isinstance(archive, MemoryArchive):
        return archive.pictures, archive.index
    return Path(archive), index_path(archive)


@contextmanager
def _write_part(part: Path | io.BytesIO, unique: bool = False) -> Iterator[Path | io.BytesIO]:
    """As `files.write_atomically`; what is in memory is written in place."""
    if isinstance(part, io.BytesIO):
        yield part
    else:
        with files.write_atomically(part, unique) as temporary:
            yield temporary


class ArchiveWriter:
    """Writes an archive and its index, one face at a time; both files appear when the block ends without an error.

    Use as a context manager. ``metadata``: plain JSON values about the whole set, kept in the index.
    """

    def __init__(self, archive: Path | MemoryArchive, metadata: Mapping[str, object] | None = None):
        self._pictures, self._index = _parts(archive)
        self.metadata = dict(metadata or {})
        self.rows: list[dict] = []

    def __enter__(self) -> "ArchiveWriter":
        self._open = self._entries()
        self._open.__enter__()
        return self

    def __exit__(self, kind, error, trace) -> None:
        self._open.__exit__(kind, error, trace)

    @contextmanager
    def _entries(self) -> Iterator[None]:
        with _write_part(self._pictures, unique=True) as pictures:
            with zipfile.ZipFile(pictures, "w", zipfile.ZIP_STORED) as self._zip:
                yield
            with zipfile.ZipFile(pictures) as entries:
                self._write_index(_checksum(entries))
            if isinstance(pictures, Path):
                pictures.chmod(0o644)  # not by the user's umask, because a lab shares its archives

    def _write_index(self, checksum: str) -> None:
        rows = pd.DataFrame(self.rows, columns=None if self.rows else EMPTY, dtype=None if self.rows else str)
        table = pa.Table.from_pandas(rows, preserve_index=False)
        metadata = json.dumps(rehearsal.mark({**self.metadata, "checksum": checksum}), sort_keys=True)
        table = table.replace_schema_metadata({"masquerade": metadata})
        with _write_part(self._index) as index:
            pq.write_table(table, index, write_page_checksum=True)

    def add(self, picture: np.ndarray | None, row: Mapping[str, object], mask: np.ndarray | None = None) -> None:
        """Add a face: its image, uint8 (H, W, 3), its ``row`` of the index, and its parsing mask, uint8 (H, W).

        ``picture``: None for a refused face; its row needs ``status='refused'`` and a ``reason``. Raises ArchiveError.
        """
        row = {"status": OK, "reason": "", **row}
        if (picture is None) != (row["status"] == REFUSED):
            raise ArchiveError(f"{row['id']}: a face with status ok needs an image, and a refused face must have none.")
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


def _checksum(entries: zipfile.ZipFile) -> str:
    """A digest of the names and CRCs in the zip's directory. It is quick, and it ties the index to its images."""
    listing = "\n".join(f"{entry.filename} {entry.CRC:08x}" for entry in entries.infolist())
    return hashlib.sha256(listing.encode()).hexdigest()


def read_metadata(index: Path | io.BytesIO) -> dict:
    """The metadata of a set, read from its index alone. Raises ArchiveError naming a damaged file."""
    try:
        return json.loads(pq.read_schema(index).metadata[b"masquerade"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(_damaged(index, error)) from error


class FaceArchive:
    """A set of faces on disk, read in batches, so that memory does not grow with the set.

    Raises ArchiveError, naming the file, if it is missing, cut, altered, or not the one that its index describes, and
    RehearsalError if only a rehearsal may read it.
    """

    def __init__(self, archive: Path | MemoryArchive):
        pictures, index = _parts(archive)
        self.path = Path("memory") if isinstance(archive, MemoryArchive) else Path(archive)
        for path in (pictures, index):
            if isinstance(path, Path) and not path.is_file():
                raise ArchiveError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        self.metadata = read_metadata(index)
        rehearsal.admit(self.metadata, self.path)
        try:
            self.index: pd.DataFrame = pq.read_table(index, page_checksum_verification=True).to_pandas()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(_damaged(index, error)) from error
        try:
            self._entries = zipfile.ZipFile(pictures)  # stays open: reading its directory again takes time
            checksum = _checksum(self._entries)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ArchiveError(_damaged(self.path, error)) from error
        if checksum != self.metadata.get("checksum"):
            raise ArchiveError(_damaged(self.path, "it does not have the images of its index"))

    def __len__(self) -> int:
        return len(self.index)

    def select(self, part: str | None = None, status: str | None = OK) -> pd.DataFrame:
        """The rows of one part (None: all) with one status (None: any), in the order of the archive.

        ``part``: a split, or a group of people of the train split (core/people.py). Raises ArchiveError if the archive
        has no groups.
        """
        rows = self.index
        if part in people.GROUPS:
            if "group" not in rows:
                raise ArchiveError(
                    f"{self.path} does not say which people are in the group '{part}': it was not built as a dataset "
                    f"of this version. Delete it and run `snakemake {self.path}` again."
                )
            rows = rows[rows["group"] == part]
        elif part is not None:
            rows = rows[rows["split"] == part]
        return rows if status is None else rows[rows["status"] == status]

    def digest(self, part: str) -> str:
        """A digest of the images of a part and of their order, for what is learned from them."""
        listing = "\n".join([self.metadata["checksum"], *self.select(part)["id"]])
        return hashlib.sha256(listing.encode()).hexdigest()

    def batches(self, size: int, part: str | None = None, rows: pd.DataFrame | None = None) -> Iterator[Faces]:
        """Batches of at most ``size`` faces: the given ``rows`` of the index, or all of a ``part`` with status ok."""
        selected = self.select(part) if rows is None else rows
        for start in range(0, len(selected), size):
            index = selected.iloc[start : start + size]
            yield Faces(to_float(np.stack([self._read("faces", name) for name in index["id"]])), index)

    def load(self, part: str | None = None, rows: pd.DataFrame | None = None) -> Faces:
        """The faces of `batches` as one batch in memory. Raises ArchiveError if there is none."""
        selected = self.select(part) if rows is None else rows
        if selected.empty:
            raise ArchiveError(f"{self.path} holds no usable face{f' in part {part}' if part else ''}.")
        return next(self.batches(len(selected), rows=selected))

    def pictures(self, rows: pd.DataFrame) -> np.ndarray:
        """The images of the given rows, uint8 (N, S, S, 3). 27,000 of 256 x 256 pixels take 5.3 GB."""
        images = (self._read("faces", name) for name in rows["id"])
        first = next(images, np.empty((0, 0, 3), dtype=np.uint8))
        pictures = np.empty((len(rows), *first.shape), dtype=np.uint8)
        for place, picture in enumerate(itertools.chain([first], images) if len(rows) else ()):
            pictures[place] = picture
        return pictures

    def masks(self, rows: pd.DataFrame) -> np.ndarray:
        """Parsing masks of the given rows, uint8 (N, H, W)."""
        return np.stack([self._read("masks", name) for name in rows["id"]])

    def _read(self, folder: str, name: str) -> np.ndarray:
        try:
            with Image.open(io.BytesIO(self._entries.read(f"{folder}/{name}.png"))) as picture:
                return np.asarray(picture)
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise ArchiveError(_damaged(self.path, f"{folder}/{name}.png: {error}")) from error


def _damaged(path: object, why: object) -> str:
    return f"{path} is damaged ({why}). Delete it and run `snakemake {path}` again, or fetch it with `dvc pull`."
