"""Images of other people, for methods that show them: the methods' people, whom no judge learns from."""

import numpy as np
import pandas as pd

from masquerade.core.errors import ArchiveError
from masquerade.core.images import FaceArchive
from masquerade.methods import Method, Resources


def open_gallery(resources: Resources) -> tuple[FaceArchive, pd.DataFrame]:
    """The archive of the gallery and its usable rows. Raises ArchiveError if there are none."""
    if resources.gallery is None:
        raise ArchiveError(
            "This method shows images of other people and has no gallery. Give it a face archive as its gallery."
        )
    rows = resources.gallery.select(Method.people)
    if rows.empty:
        raise ArchiveError(
            f"{resources.gallery.path} has no usable face of the group '{Method.people}'; a gallery needs one or more. "
            "Raise people.methods in params.yaml, or build the archive of more people."
        )
    return resources.gallery, rows


def load_images(archive: FaceArchive, rows: pd.DataFrame, selected: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The chosen rows (int, any shape S) as images, float32 (*S, 3, H, W). Each image is read once.

    Raises ArchiveError if their size is not that of the images ``like``, which they replace.
    """
    unique, positions = np.unique(selected, return_inverse=True)
    images = archive.load(rows=rows.iloc[unique]).images
    if images.shape[1:] != like.shape[1:]:
        raise ArchiveError(
            f"{archive.path} holds images of {images.shape[-1]} pixels, but the faces have {like.shape[-1]}: "
            "both must be equal. Build both at one size (`image.size` in params.yaml)."
        )
    return images[positions.reshape(np.shape(selected))]
