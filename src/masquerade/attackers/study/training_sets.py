"""What an attacker learns from: clear and anonymized images of its own people, some of whom are held out."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from masquerade.core.errors import ProtocolError
from masquerade.core.images import FaceArchive
from masquerade.core.people import sort_by_hash
from masquerade.params.protocols import AttackedPeople, InformedSettings

PART = "train"
"""The part of an anonymized archive with the attackers' people: they are the only ones of the train split in it."""
PEOPLE, PICTURES = 2, 2
"""The fewest people on either side of a training set, and the fewest images of each, from which to learn anything."""
SEARCHED = 24
"""Images of a training set on which the strength of a filter is chosen."""


class Photographs(NamedTuple):
    """Clear images, uint8 (N, H, W, 3), and for each the person and the id, (N,)."""

    images: np.ndarray
    people: np.ndarray
    ids: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """Images before and after the anonymization, row by row: uint8 (N, H, W, 3) each.

    ``people`` and ``ids``: (N,), the person in each image and the id of the original.
    """

    clear: np.ndarray
    anonymized: np.ndarray
    people: np.ndarray
    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, rows: np.ndarray) -> "Pairs":
        """The rows of a mask, bool (N,)."""
        return Pairs(self.clear[rows], self.anonymized[rows], self.people[rows], self.ids[rows])

    @property
    def photographs(self) -> Photographs:
        """The images before the anonymization."""
        return Photographs(self.clear, self.people, self.ids)

    @property
    def numbers(self) -> np.ndarray:
        """The number of the person in each image, int64 (N,), from 0."""
        return np.unique(self.people, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class AttackerTrainingSet:
    """The attackers' people: those from whom an attack learns, and those who are held out."""

    learn: Pairs
    held_out: Pairs
    digest: str
    """Of all images, for what is learned from them."""


def select_people(rows: pd.DataFrame, settings: AttackedPeople) -> pd.DataFrame:
    """The rows of the first people by a hash of their names, and of the first images of each; 0: all."""
    names = sort_by_hash(rows["identity"])
    selected = rows[rows["identity"].isin(names[: settings.people or None])]
    return selected.groupby("identity", sort=False).head(settings.pictures) if settings.pictures else selected


def collect_training_set(
    originals: FaceArchive, anonymized: FaceArchive, settings: InformedSettings, tested: Iterable[str]
) -> AttackerTrainingSet:
    """The training set of the attackers' images in ``anonymized``; ``originals`` has their sources.

    ``tested``: the people of the validation and test splits. Refused images are left out. Raises ProtocolError if an
    attacker's person is among them, or if there are too few people with several images.
    """
    rows = anonymized.select(PART)
    strangers = sorted(set(rows["identity"]) & set(tested))
    if strangers:
        raise ProtocolError(
            f"{anonymized.path}: {len(strangers)} people of the attackers are also tested (the first: {strangers[0]}). "
            "An attack may not learn from a person on whom it is tested. Give the dataset splits without common people."
        )
    counts = rows["identity"].value_counts()
    several = rows[rows["identity"].map(counts) >= PICTURES]
    names = sort_by_hash(several["identity"])
    held_out = max(PEOPLE, math.ceil(settings.held_out * len(names)))
    if len(names) < held_out + PEOPLE:
        raise ProtocolError(
            f"{anonymized.path} has {len(names)} people of the attackers with {PICTURES} usable pictures or more, and "
            f"an attack needs {held_out + PEOPLE}: {PEOPLE} to learn from and {held_out} to measure it on. Raise "
            "informed.people, informed.pictures or the train split of the dataset, or take the cell out of "
            "informed.cells."
        )
    pairs = _pairs(originals, anonymized, several)
    is_held_out = np.isin(pairs.people, names[:held_out])
    digest = hashlib.sha256(
        " ".join([originals.metadata["checksum"], anonymized.metadata["checksum"], *pairs.ids]).encode()
    )
    return AttackerTrainingSet(pairs.of(~is_held_out), pairs.of(is_held_out), digest.hexdigest())


def select_pairs(originals: FaceArchive, anonymized: FaceArchive, part: str) -> Pairs:
    """All usable images of a part of ``anonymized`` with their sources."""
    return _pairs(originals, anonymized, anonymized.select(part))


def select_photographs(originals: FaceArchive, part: str) -> Photographs:
    """All clear images of a part, also those whose anonymization was refused."""
    rows = originals.select(part)
    return Photographs(originals.pictures(rows), rows["identity"].to_numpy(), rows["id"].to_numpy())


def _pairs(originals: FaceArchive, anonymized: FaceArchive, rows: pd.DataFrame) -> Pairs:
    sources = originals.index.set_index("id", drop=False).loc[rows["source_id"]]
    clear, changed = originals.pictures(sources), anonymized.pictures(rows)
    return Pairs(clear, changed, sources["identity"].to_numpy(), sources["id"].to_numpy())
