"""Images that another program made: looked up by the ids of the faces."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.core import fingerprints
from masquerade.core.errors import ArchiveError, PictureError
from masquerade.core.files import write_atomically
from masquerade.core.images import Faces, to_float, to_uint8
from masquerade.core.settings import NoParameters
from masquerade.methods import Capabilities, Method, Resources
from masquerade.params.blocks import ImportedImages

if TYPE_CHECKING:
    from masquerade.methods.imported.originals import Originals

NO_PICTURE = "the program that was imported gave no image of this face"
ABOUT = "about.json"
"""The entry of the file that says of which faces the images are: ``{"faces": <checksum of their archive>}``."""
RECOVERED = "recovered/"
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # so that the same images give the same bytes


class Imported(Method):
    """What another program made of the same faces. It runs nothing and learns nothing, and its training is not known.

    An image that shows an original, also in disguise, stops the build: it would count as an anonymized one.
    """

    title = "Imported"
    paper = "that of the program; see `source` of the variant"
    capabilities = Capabilities(images=True, invertible=True)

    Variant = ImportedImages
    variant: ImportedImages

    def __init__(self, params: NoParameters, variant: ImportedImages, resources: Resources):
        super().__init__(params, variant, resources)
        assert resources.images is not None
        assert resources.originals is not None
        self._path, self._originals = resources.images, resources.originals
        self._digest = fingerprints.sha256(self._path)
        if self._digest not in variant.images.values():
            raise ArchiveError(
                f"{self._path} has the SHA-256 {self._digest}, which the parameters do not name. Fetch the right file "
                "with `dvc pull`, or give its folder to `masquerade score` again."
            )
        self._seen: Originals | None = None

    @cached_property
    def _pictures(self) -> "StoredPictures":
        stored = StoredPictures(self._path)
        if stored.faces != self._originals.metadata["checksum"]:
            raise ArchiveError(
                f"{self._path} was made of other faces than those of {self._originals.path}. Export these with "
                "`masquerade export-faces`, run the program on them, and score its results."
            )
        return stored

    def observe(self, batches: Iterable[Faces]) -> None:
        from masquerade.methods.imported.originals import Originals  # it imports scikit-image, which planning must not

        rows = pd.concat([faces.index for faces in batches])
        self._seen = Originals(self._originals, rows)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError for a face without an image, and ArchiveError if an image shows an original."""
        if self._seen is None:
            self.observe([faces])
        assert self._seen is not None
        results = []
        for name in faces.ids:
            picture = self._pictures.read(name, faces.images.shape[-1])
            try:
                results.append(self._seen.check(picture, name, self.variant.near))
            except PictureError as error:
                raise ArchiveError(f"{self._path}: {name} is {error}") from error
        return to_float(np.stack(results))

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """What the program recovered from its own images. Raises PictureError for an image that is none of them."""
        return to_float(np.stack([self._pictures.read_recovered(picture) for picture in to_uint8(images)]))

    def statement(self) -> dict[str, object]:
        return {"imported": f"sha256:{self._digest}", "program": self.variant.source}


class StoredPictures:
    """The images of a file that `store` wrote."""

    def __init__(self, path: Path):
        self.path = path
        self._entries = zipfile.ZipFile(path)  # stays open: reading its directory again takes time
        self._names = set(self._entries.namelist())
        self.faces = json.loads(self._entries.read(ABOUT))["faces"]

    def read(self, name: str, size: int) -> np.ndarray:
        """The image of a face, uint8 (size, size, 3). Raises PictureError if there is none."""
        if f"{name}.png" not in self._names:
            raise PictureError(NO_PICTURE)
        picture = self._decode(f"{name}.png")
        if picture.shape != (size, size, 3):
            raise ArchiveError(f"{self.path}: {name} is not {size} x {size} pixels. Score its folder again.")
        return picture

    def read_recovered(self, picture: np.ndarray) -> np.ndarray:
        """What was recovered from an image. Raises PictureError if the file does not hold both, or holds it twice."""
        entries = self._entries_by_content.get(hashlib.sha256(picture.tobytes()).digest(), [])
        if len(entries) > 1:
            raise PictureError("several faces have this image")
        if not entries or RECOVERED + entries[0] not in self._names:
            raise PictureError("the program that was imported recovered nothing from this image")
        return self._decode(RECOVERED + entries[0])

    @cached_property
    def _entries_by_content(self) -> dict[bytes, list[str]]:
        """Digest of an image -> the entries of the faces that have it."""
        entries: dict[bytes, list[str]] = {}
        for name in self._names - {ABOUT}:
            if not name.startswith(RECOVERED):
                entries.setdefault(hashlib.sha256(self._decode(name).tobytes()).digest(), []).append(name)
        return entries

    def _decode(self, entry: str) -> np.ndarray:
        with Image.open(io.BytesIO(self._entries.read(entry)), formats=["PNG"]) as opened:
            return np.asarray(opened.convert("RGB"))


def store(output: Path, faces: str, pictures: Mapping[str, np.ndarray], recovered: Mapping[str, np.ndarray]) -> None:
    """Write images by their ids, uint8 (H, W, 3), as PNGs into one zip. ``faces``: the checksum of the originals."""
    entries = {**pictures, **{f"{RECOVERED}{name}": picture for name, picture in recovered.items()}}
    with write_atomically(output) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as out:
        out.writestr(zipfile.ZipInfo(ABOUT, _FIXED_DATE), json.dumps({"faces": faces}))
        for name, picture in entries.items():
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
            out.writestr(zipfile.ZipInfo(f"{name}.png", _FIXED_DATE), buffer.getvalue())
