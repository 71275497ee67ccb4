"""A few faces to count the cost on, the number of faces in a dataset, and the bytes of a picture on disk."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from drawnpeople.shot import STUDIO
from masquerade import faces
from masquerade.core import discovery
from masquerade.core.images import ArchiveWriter
from masquerade.faces import Record
from masquerade.faces.rendered.base import RenderedDataset, render
from masquerade.methods import Method
from masquerade.params.parameters import Parameters

TRAIN = 64
"""Faces in the train split: enough for every batch that is drawn without replacement."""
PEOPLE = 32
"""Identities in the train split."""


def write(archive: Path, size: int, test: int) -> None:
    """Write an archive with TRAIN faces in the train split, 8 in the validation split and ``test`` in the test split.

    All are the same drawn face: the cost of a network depends on the size of a picture, not on its content.
    """
    drawn = render(("plan", "train", 0, 0, 0, STUDIO, size, 1))
    splits = {"train": (TRAIN, PEOPLE), "validation": (8, 4), "test": (test, max(1, test // 2))}
    with ArchiveWriter(archive, facts={"dataset": "plan", "size": size}) as out:
        for split, (count, people) in splits.items():
            for number in range(count):
                name = f"{split}-{number}"
                row = {"id": name, "source_id": name, "identity": f"{split}-{number % people}", "split": split}
                row["group"] = Method.people if split == "train" else ""
                out.add(drawn.picture, drawn.row | row, drawn.mask)


def png_bytes(parameters: Parameters, dataset: str, masks: bool = False) -> int:
    """Bytes of one face of a dataset as a PNG. For a dataset that is not drawn, scikit-image's photograph is used.

    ``masks``: with the parsing mask if the face has one, as in the archive of the dataset itself.
    """
    cls, size = discovery.load("faces", dataset), parameters.image.size
    if issubclass(cls, RenderedDataset):
        source = cls(parameters.datasets[dataset])
        return _png(render((source.prefix, "test", 0, 0, 0, source.conditions(), size, 1)), masks)
    from skimage import data

    photograph = Image.fromarray(data.astronaut()).resize((size, size), Image.Resampling.LANCZOS)
    return _png(Record(np.asarray(photograph), {}), masks)


def _png(record: Record, masks: bool) -> int:
    total = 0
    for pixels in (record.picture, record.mask if masks else None):
        if pixels is not None:
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
            total += buffer.tell()
    return total


def count(parameters: Parameters, dataset: str, built: Path) -> dict[str, int] | None:
    """Number of faces in each split, from the archive if it is built, else from the dataset's module.

    Returns None when the module cannot give the number before the archive is built.
    """
    if built.is_file():
        import pandas as pd

        splits = pd.read_parquet(built, columns=["split", "status"])
        return splits[splits["status"] == "ok"]["split"].value_counts().to_dict()
    source: faces.Dataset = discovery.load("faces", dataset)(parameters.datasets[dataset])
    return source.count(parameters.data_seed)


def people(parameters: Parameters, dataset: str, built: Path) -> int | None:
    """Number of people in the train split, from the archive if it is built, else from a drawn dataset's parameters.

    Returns None for other datasets.
    """
    if built.is_file():
        import pandas as pd

        rows = pd.read_parquet(built, columns=["split", "status", "identity"])
        return rows[(rows["split"] == "train") & (rows["status"] == "ok")]["identity"].nunique()
    source = discovery.load("faces", dataset)(parameters.datasets[dataset])
    return source.params.identities.train if isinstance(source, RenderedDataset) else None
