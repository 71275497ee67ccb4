"""Where faces come from: one module a dataset, and the alignment that brings photographs into the image contract.

A dataset yields records; `build` writes them into one face archive. Procedural faces know everything about
themselves (attributes, landmarks, parsing mask, caption); photographs know what a detector finds.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from masquerade.images import ArchiveWriter
from masquerade.settings import Settings

MANIFESTS = Path(".masquerade/datasets")
"""Where datasets of many files write down which they are; jobs declare that file, and it travels with the results."""


@dataclass(frozen=True)
class Record:
    """One face. ``picture`` uint8 (H, W, 3), or None for a refusal; ``mask`` uint8 (H, W) of parsing labels, or None.

    ``row`` holds at least ``id`` (unique, safe in a file name), ``identity`` (whose face; '' where unknown) and
    ``split`` (train, validation or test); a refusal also ``status='refused'`` and ``reason``. Optional:
    ``landmarks`` (136 floats x0, y0, x1, ... in pixels, iBUG order), ``caption``, ``pose.yaw``, ``pose.pitch``,
    ``pose.roll`` (degrees) and ``attribute.<name>`` (bool, or float for ``attribute.age``, in years).
    """

    picture: np.ndarray | None
    row: dict
    mask: np.ndarray | None = None


class Dataset(ABC):
    """What a module of faces/ defines, once: a subclass with its ``Params`` (its block of params.yaml).

    The matrix asks ``available`` before it plans a cell; the data rule calls ``records``. Identities of
    different splits must be disjoint. Nothing is downloaded without being asked for. Importing the module must
    not import torch.
    """

    title: ClassVar[str]
    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    class Params(Settings):
        pass

    def __init__(self, params: Settings):
        self.params = params

    def available(self) -> tuple[bool, str]:
        """(True, '') or (False, why not and what to do)."""
        return True, ""

    def sources(self) -> list[Path]:
        """The files from which the faces are made; the data rule lists them as its inputs. Drawn faces have none."""
        return []

    def count(self, seed: int) -> dict[str, int] | None:
        """Faces of each split, where that is known before any is made; None where only the files can tell."""
        return None

    @abstractmethod
    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every face, ``size`` x ``size`` pixels, in a fixed order that does not depend on ``workers``."""


BASE = Dataset


def build(dataset: Dataset, archive: Path, size: int, seed: int, workers: int = 1) -> None:
    """Write all faces of ``dataset`` to ``archive`` (and its index)."""
    with ArchiveWriter(archive, facts={"dataset": type(dataset).__module__.rsplit(".", 1)[-1], "size": size}) as out:
        for record in dataset.records(size, seed, workers):
            out.add(record.picture, record.row, record.mask)
