"""The datasets, one module each, and the base class that they share: a dataset yields faces with what is known of them.

Networks that look at faces are in backbones/ and judges/; the steps that call a dataset are in pipeline/.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from masquerade.core import discovery, people
from masquerade.core.images import ArchiveWriter
from masquerade.core.settings import NoParameters, Settings

MANIFESTS = Path(".masquerade/datasets")
"""The folder of the manifests, each a list of the files of a dataset. Jobs name a manifest as their input."""

DETAIL = 256
"""Side in pixels of ``Record.detailed``; judges of faces look at images of this size."""


@dataclass(frozen=True)
class Record:
    """One face. ``picture`` uint8 (H, W, 3), or None for a refusal; ``mask`` uint8 (H, W) of parsing labels, or None.

    ``row`` holds at least ``id`` (unique, safe in a file name), ``identity`` (the person; '' if unknown) and ``split``
    (train, validation, test or gallery: `images.GALLERY`). The row of a refusal also has ``status='refused'`` and
    ``reason``. Optional: ``landmarks`` (136 floats x0, y0, x1, ... in pixels, iBUG order), ``caption``, ``pose.yaw``,
    ``pose.pitch``, ``pose.roll`` (degrees) and ``attribute.<name>`` (bool, or float for ``attribute.age``, in years).
    For example: ``{"id": "hq-train-0000-01", "identity": "hq-train-0000", "split": "train", "pose.yaw": -3.2,
    "landmarks": [14.1, 30.6, ...], "caption": "A young woman, smiling.", "attribute.Male": False, ...}``.
    ``detailed``: the same face at `DETAIL` pixels, uint8 (DETAIL, DETAIL, 3), for a judge that compares photographs; no
    archive holds it.
    """

    picture: np.ndarray | None
    row: dict
    mask: np.ndarray | None = None
    detailed: np.ndarray | None = None


class Dataset(ABC):
    """A dataset. A module of faces/ defines one subclass, with its ``Params``: its block of params.yaml.

    The matrix calls ``available`` before it plans a cell; the data rule calls ``records``. Splits share no
    identity, but for test and gallery. A dataset downloads nothing. Importing the module must not import torch.
    """

    title: ClassVar[str]
    shows: ClassVar[str] = "photographs of people"
    """What its images are, in words for the model cards of networks that learn from them."""
    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")
    labeled_by: ClassVar[tuple[str, ...]] = ()
    """Judges that predicted what is known of its faces, such as their landmarks; none if it is known exactly."""

    synthetic: ClassVar[bool] = False
    """Whether its people do not exist. The faces of real people leave this machine only by `share_originals`."""
    terms: ClassVar[str] = ""
    """Terms of use that its images, and whatever learns from them, carry; '' if its publishers' page states them."""
    parts_folder: Path | None = None
    """A folder that survives an interruption of `records`, for finished parts; `build` names it and deletes it."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings):
        self.params = params

    def available(self) -> tuple[bool, str]:
        """Returns (True, ''), or (False, reason), which says what is missing and what to do."""
        return True, ""

    def sources(self) -> list[Path]:
        """The source files of the faces; the data rule lists them as its inputs. Rendered faces have none."""
        return []

    def count(self, seed: int) -> dict[str, int] | None:
        """Number of faces of each split, without reading any. Returns None when only the files can give it."""
        return None

    @abstractmethod
    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every face, ``size`` x ``size`` pixels. The order is fixed and does not depend on ``workers``."""


BASE = Dataset


def build(dataset: Dataset, archive: Path, size: int, seed: int, shares: Mapping[str, float], workers: int = 1) -> None:
    """Write all faces of ``dataset`` to ``archive`` and its index.

    ``shares``: group -> share of the people of the train split. The column ``group`` of the index names the group of a
    face; '' in the other splits. An image of nobody known is its own person.
    """
    dataset.parts_folder = archive.with_name(f".{archive.stem}.parts")
    with ArchiveWriter(archive, metadata={"dataset": discovery.find_name(type(dataset)), "size": size}) as out:
        for record in dataset.records(size, seed, workers):
            row = record.row
            person = row["identity"] or row["id"]
            group = people.assign_group(person, shares) if row["split"] == "train" else ""
            out.add(record.picture, {**row, "group": group}, record.mask)
    shutil.rmtree(dataset.parts_folder, ignore_errors=True)
