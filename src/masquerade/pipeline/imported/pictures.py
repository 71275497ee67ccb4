"""Collects the images of another program from a folder into one file, and builds the archive of a cell from it.

Both steps compare every image with the originals. An image that shows an original, or one in disguise, is never
imported.
"""

import hashlib
import io
import shlex
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.core.errors import ArchiveError, PictureError
from masquerade.core.files import write_atomically
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.decoding import resize_square
from masquerade.faces.photographs.names import files
from masquerade.params.blocks import ImportedSet
from masquerade.pipeline import anonymization
from masquerade.pipeline.imported import disguises

SPLIT = "test"
BATCH = 32
MEGAPIXELS = 40.0  # the limit of one image, against decompression bombs
LOOKED_UP = 3  # originals, besides its own, that an image may be in disguise
DISGUISED = 2 / 3  # of `near`: the largest difference of an original in disguise, in gray levels
LEAST = 1.0  # gray levels that rounding leaves when a disguise is undone
MOST_NAMES = 5  # names that an error lists; the others are counted
NO_PICTURE = "the program that was imported gave no image of this face"
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # so that the same images give the same bytes


class Originals:
    """The test faces of a dataset. `match` finds the one that an image shows."""

    def __init__(self, archive: FaceArchive):
        self.archive = archive
        self.rows = archive.select(SPLIT)
        self.size = archive.metadata["size"]
        profiles = [np.empty((0, self.size * 3), np.float32)]
        signatures = []
        sha = hashlib.sha256()
        for faces in archive.batches(BATCH, rows=self.rows):
            pictures = to_uint8(faces.images)
            profiles.append(_profiles(pictures))
            signatures += map(disguises.signature, pictures)
            for name, picture in zip(faces.ids, pictures, strict=True):
                sha.update(name.encode() + b"\0" + picture.tobytes())
        self._profiles, self._signatures = np.concatenate(profiles), np.array(signatures)
        self.digest = sha.hexdigest()
        """SHA-256 of the ids and pixels of the faces, in their order."""

    def match(self, picture: np.ndarray, near: float) -> str:
        """The id of an original from which ``picture`` differs by at most ``near`` gray levels in the mean, else ''.

        ``picture``: uint8 (H, W, 3). The difference of the row means is never larger than that of the pixels. So only
        originals with similar row means are loaded.
        """
        distances = np.abs(self._profiles - _profiles(picture[None])).mean(axis=1)
        for place in np.flatnonzero(distances <= near + 1e-3):  # allows for the rounding of float32
            if _difference(picture, self._original(place)) <= near:
                return self.rows["id"].iloc[place]
        return ""

    def disguised(self, picture: np.ndarray, name: str, near: float) -> str:
        """The id of an original that ``picture`` shows in disguise (`disguises`), else ''.

        It is compared with the original ``name`` and with those of the most similar `disguises.signature`.
        """
        alike = np.argsort(-(self._signatures @ disguises.signature(picture)))[:LOOKED_UP]
        for place in dict.fromkeys([*np.flatnonzero(self.rows["id"] == name), *alike]):
            original = self._original(place)
            left = disguises.difference(picture, original)
            plain = _difference(picture, original)
            if left <= max(DISGUISED * near, LEAST) and left < plain / 2 and plain > LEAST:
                return self.rows["id"].iloc[place]
        return ""

    def _original(self, place: np.integer) -> np.ndarray:
        return to_uint8(self.archive.load(rows=self.rows.iloc[[place]]).images[0])


def _difference(picture: np.ndarray, original: np.ndarray) -> float:
    return float(np.abs(original.astype(np.int16) - picture).mean())


def _profiles(pictures: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W, 3) -> the mean of every row and color, float32 (N, 3 H)."""
    return pictures.mean(axis=2, dtype=np.float32).reshape(len(pictures), -1)


def export(archive: FaceArchive, output: Path) -> int:
    """Write every test face to the folder ``output`` as ``<id>.png``. Returns the number of faces."""
    output.mkdir(parents=True, exist_ok=True)
    rows = archive.select(SPLIT)
    for faces in archive.batches(BATCH, rows=rows):
        for name, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
            Image.fromarray(picture).save(output / f"{name}.png")
    return len(rows)


def collect(
    folder: Path, originals: Originals, output: Path, near: float, partial: bool, resize: bool, suffix: str = ""
) -> int:
    """Write the images below ``folder``, in any readable format, to the file ``output``. Returns their number.

    The name of an image without its file type and ``suffix`` is the id of its original. ``partial``: faces may lack a
    image. ``resize``: square images of another size are resize_square. ``near``: see `Originals.match`. Raises
    ArchiveError, which lists every mistake, and writes nothing if a face lacks an image, or an image belongs to no
    face, cannot be read, has another size or shows an original.
    """
    paths: dict[str, list[Path]] = {}
    locked = []
    for path in files(folder):
        if path.is_dir() and not path.is_symlink():
            locked.append(path.name)
        else:
            paths.setdefault(path.stem.removesuffix(suffix), []).append(path)
    expected = originals.rows["id"].tolist()
    unknown = [path.name for name in paths.keys() - set(expected) for path in paths[name]]
    missing = [name for name in expected if name not in paths]
    mistakes = {
        decoding.LOCKED_FOLDER: locked,
        "no image (--partial counts such faces as refused by the program)": [] if partial else missing,
        f"the name is not the id of a test face; {_remedy(unknown, set(expected))}": sorted(unknown),
        "several files": [name for name in expected if len(paths.get(name, ())) > 1],
    }
    pictures = {}
    for name in expected:
        if len(paths.get(name, ())) != 1:
            continue
        try:
            pictures[name] = _read(paths[name][0], folder, name, originals, near, resize)
        except PictureError as error:
            mistakes.setdefault(str(error), []).append(name)
    lines = [f"- {_list_names(names)}: {what}" for what, names in mistakes.items() if names]
    if lines or not pictures:
        lines = lines or ["- there is no image"]
        raise ArchiveError(
            f"{folder} cannot be imported for the {len(expected)} test faces of {originals.archive.path}:\n"
            + "\n".join(lines)
        )
    _store(pictures, output)
    return len(pictures)


def _remedy(names: list[str], expected: set[str]) -> str:
    """What to do about files whose ``names`` are no ids: most programs that rename add one suffix to all names."""
    suffixes: Counter[str] = Counter()
    for stem in (Path(name).stem for name in names):
        longest = next((length for length in range(len(stem), 0, -1) if stem[:length] in expected), len(stem))
        suffixes[stem[longest:]] += 1
    suffix, count = suffixes.most_common(1)[0] if suffixes else ("", 0)
    return f"add `--suffix={shlex.quote(suffix)}`" if suffix and 2 * count > len(names) else "remove the file"


def _read(path: Path, folder: Path, name: str, originals: Originals, near: float, resize: bool) -> np.ndarray:
    picture = decoding.read(path, folder, MEGAPIXELS)
    size = originals.size
    if picture.shape[:2] != (size, size):
        if not resize:
            raise PictureError(f"not {size} x {size} pixels (--resize brings square images to that size)")
        picture = resize_square(picture, size)
    return _check_picture(picture, name, originals, near)


def _check_picture(picture: np.ndarray, name: str, originals: Originals, near: float) -> np.ndarray:
    """The image itself. Raises PictureError if it shows an original."""
    if originals.match(picture, 0.0):
        raise PictureError("an original, unchanged; such an image is never imported")
    if originals.match(picture, near):
        raise PictureError(
            f"within {near:g} gray levels of an original in the mean; use --near 0 if the program changes so little"
        )
    if originals.disguised(picture, name, near):
        raise PictureError("an original, but mirrored, turned, shifted, brighter or darker, or with exchanged colors")
    return picture


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _store(pictures: Mapping[str, np.ndarray], output: Path) -> None:
    """Write the images as PNGs into one zip."""
    with write_atomically(output) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as entries:
        for name, picture in pictures.items():
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
            entries.writestr(zipfile.ZipInfo(f"{name}.png", _FIXED_DATE), buffer.getvalue())


def sha256(path: Path) -> str:
    """The SHA-256 of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def import_cell(
    archive: FaceArchive, pictures: Path, output: Path, knobs: ImportedSet, source: str, about: Mapping[str, object]
) -> None:
    """Write the archive of an imported cell: the test faces of ``archive`` with the images of the file ``pictures``.

    A face without an image is refused with that reason. ``source``: the paper and the program with its version.
    ``about``: method, variant and seed of the cell. Raises ArchiveError if the hash of the file is not the one in
    params.yaml, if the file was made of other originals, or if an image shows an original.
    """
    digest = sha256(pictures)
    if digest != knobs.sha256:
        raise ArchiveError(
            f"{pictures} has the SHA-256 {digest}, and params.yaml names {knobs.sha256}. Fetch the right file with "
            "`dvc pull`, or import its folder again with `masquerade import-method`."
        )
    originals = Originals(archive)
    if originals.digest != knobs.originals:
        raise ArchiveError(
            f"{pictures} was made of other faces than those of {archive.path}. Export these with `masquerade "
            "export-faces`, run the program on them, and import its results."
        )
    rows = archive.select(SPLIT, status=None)
    refused = anonymization.list_refusals(rows)
    statement = {"imported": f"sha256:{knobs.sha256}", "program": source}
    results = _results(pictures, rows[~rows["id"].isin(refused.keys())], originals, knobs.near)
    about = {**about, "key_id": ""}
    anonymization.write(output, rows, refused, results, about, {**archive.metadata, **about, "statement": statement})


def _results(
    pictures: Path, rows: pd.DataFrame, originals: Originals, near: float
) -> Iterator[tuple[np.ndarray | None, str]]:
    """(image, '') or (None, reason) for each of ``rows``, in order."""
    with zipfile.ZipFile(pictures) as entries:
        stored = set(entries.namelist())
        for name in rows["id"]:
            if f"{name}.png" not in stored:
                yield None, NO_PICTURE
                continue
            with Image.open(io.BytesIO(entries.read(f"{name}.png")), formats=["PNG"]) as opened:
                picture = np.asarray(opened.convert("RGB"))
            if picture.shape != (originals.size, originals.size, 3):
                raise ArchiveError(
                    f"{pictures}: {name} is not {originals.size} x {originals.size} pixels. Import its folder again."
                )
            try:
                yield _check_picture(picture, name, originals, near), ""
            except PictureError as error:
                raise ArchiveError(f"{pictures}: {name} is {error}") from error
