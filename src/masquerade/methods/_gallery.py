"""Pictures of other people, for the methods that show them: the train split, whose identities are disjoint."""

import numpy as np
import pandas as pd

from masquerade.errors import ArchiveError
from masquerade.images import FaceArchive
from masquerade.methods import Resources


def of(resources: Resources) -> tuple[FaceArchive, pd.DataFrame]:
    """The gallery's archive and its usable rows. Raises ArchiveError where there are none."""
    if resources.gallery is None:
        raise ArchiveError("This method shows pictures of other people and was given no gallery (a face archive).")
    rows = resources.gallery.select("train")
    if rows.empty:
        raise ArchiveError(f"{resources.gallery.path} has no usable face in its train split to serve as a gallery.")
    return resources.gallery, rows


def pictures(archive: FaceArchive, rows: pd.DataFrame, chosen: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The chosen rows (int, any shape S) as pictures, float32 (*S, 3, H, W), each read once.

    Raises ArchiveError where they have another size than the pictures ``like`` which they stand in for.
    """
    unique, place = np.unique(chosen, return_inverse=True)
    images = archive.load(rows=rows.iloc[unique]).images
    if images.shape[1:] != like.shape[1:]:
        raise ArchiveError(
            f"{archive.path} holds pictures of {images.shape[-1]} pixels, but the faces have {like.shape[-1]}."
        )
    return images[place.reshape(np.shape(chosen))]
