"""Finds the original that an image shows, unchanged, nearly unchanged, or in disguise (`disguises`)."""

from functools import cached_property

import numpy as np
import pandas as pd

from masquerade.core.errors import PictureError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.methods.imported import disguises

BATCH = 32
LOOKED_UP = 3  # originals, besides its own, that an image may be in disguise
DISGUISED = 2 / 3  # of `near`: the largest difference of an original in disguise, in gray levels
LEAST = 1.0  # gray levels that rounding leaves when a disguise is undone


class Originals:
    """Unprotected faces: ``rows`` of the index of ``archive``. Their images are read when they are needed."""

    def __init__(self, archive: FaceArchive, rows: pd.DataFrame):
        self.archive, self.rows = archive, rows

    def check(self, picture: np.ndarray, name: str, near: float) -> np.ndarray:
        """``picture``, uint8 (H, W, 3), as it is. Raises PictureError if it shows an original.

        ``name``: the id of its own original. ``near``: in gray levels.
        """
        if self.match(picture, 0.0):
            raise PictureError("an original, unchanged; such an image is never imported")
        if self.match(picture, near):
            raise PictureError(
                f"within {near:g} gray levels of an original in the mean; use --near 0 if the program changes so little"
            )
        if self.find_disguised(picture, name, near):
            raise PictureError(
                "an original, but mirrored, turned, shifted, brighter or darker, or with exchanged colors"
            )
        return picture

    def match(self, picture: np.ndarray, near: float) -> str:
        """The id of an original from which ``picture`` differs by at most ``near`` gray levels in the mean, else ''.

        The difference of the row means is never larger than that of the pixels. So only originals with similar row
        means are loaded.
        """
        profiles, _ = self._features
        distances = np.abs(profiles - _compute_profiles(picture[None])).mean(axis=1)
        for place in np.flatnonzero(distances <= near + 1e-3):  # allows for the rounding of float32
            if _compute_difference(picture, self._read(place)) <= near:
                return self.rows["id"].iloc[place]
        return ""

    def find_disguised(self, picture: np.ndarray, name: str, near: float) -> str:
        """The id of an original that ``picture`` shows in disguise (`disguises`), else ''.

        It is compared with the original ``name`` and with those of the most similar `disguises.signature`.
        """
        _, signatures = self._features
        alike = np.argsort(-(signatures @ disguises.signature(picture)))[:LOOKED_UP]
        for place in dict.fromkeys([*np.flatnonzero(self.rows["id"] == name), *alike]):
            original = self._read(place)
            left = disguises.difference(picture, original)
            plain = _compute_difference(picture, original)
            if left <= max(DISGUISED * near, LEAST) and left < plain / 2 and plain > LEAST:
                return self.rows["id"].iloc[place]
        return ""

    @cached_property
    def _features(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of every row and color of each original, float32 (N, 3 H), and the signatures, float32 (N, F)."""
        profiles, signatures = [], []
        for faces in self.archive.batches(BATCH, rows=self.rows):
            pictures = to_uint8(faces.images)
            profiles.append(_compute_profiles(pictures))
            signatures += map(disguises.signature, pictures)
        return np.concatenate(profiles), np.array(signatures)

    def _read(self, place: np.integer) -> np.ndarray:
        return to_uint8(self.archive.load(rows=self.rows.iloc[[place]]).images[0])


def _compute_difference(picture: np.ndarray, original: np.ndarray) -> float:
    return float(np.abs(original.astype(np.int16) - picture).mean())


def _compute_profiles(pictures: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W, 3) -> the mean of every row and color, float32 (N, 3 H)."""
    return pictures.mean(axis=2, dtype=np.float32).reshape(len(pictures), -1)
