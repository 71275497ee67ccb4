"""Counts the imported faces of which a judge still finds the person."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from masquerade.core.images import to_float
from masquerade.core.settings import Settings
from masquerade.judges.dlib_face import DlibFace
from masquerade.pipeline.imported.pictures import Originals

COMPARED = 50  # faces at most: dlib takes a sixth of a second for both images of each


def count(stored: Path, originals: Originals) -> tuple[int, int]:
    """(faces of which dlib finds the person, faces compared) of the file that `pictures.collect` wrote.

    The person is found if the nearest of the compared originals shows the same person. Of many faces, some are
    compared, evenly spread.
    """
    with zipfile.ZipFile(stored) as entries:
        names = [name for name in originals.rows["id"] if f"{name}.png" in entries.namelist()]
        names = [names[place] for place in np.unique(np.linspace(0, len(names) - 1, COMPARED).round().astype(int))]
        pictures = [np.asarray(Image.open(io.BytesIO(entries.read(f"{name}.png")))) for name in names]
    rows = originals.rows.set_index("id", drop=False).loc[names]
    judge = DlibFace(Settings(), {})
    theirs = judge.measure(to_float(np.stack(pictures)))["embedding"]
    ours = judge.measure(originals.archive.load(rows=rows).images)["embedding"]
    nearest = np.linalg.norm(theirs[:, None] - ours[None], axis=2).argmin(axis=1)
    people = [identity or name for identity, name in zip(rows["identity"], names, strict=True)]
    return sum(people[place] == people[found] for place, found in enumerate(nearest)), len(names)
