"""What all attacks have in common: the people from whom attackers learn, and the distances that measure an attack.

An attacker learns from clear and anonymized images of people of its own, some of whom are held out. The attackers
themselves, and the trainings that some of them share, are one folder up.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
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
Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Embeddings (N, D) and (M, D) -> distances (N, M), as `Attacker.compare` gives them."""


class Photographs(NamedTuple):
    """Unprotected images, uint8 (N, H, W, 3), and for each the person and the id, (N,)."""

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


def count_held_out(people: int, share: float) -> int:
    """How many of the attackers' people are held out: ``share`` of them, and at least `PEOPLE`."""
    return max(PEOPLE, math.ceil(share * people))


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
    held_out = count_held_out(len(names), settings.held_out)
    if len(names) < held_out + PEOPLE:
        raise ProtocolError(
            f"{anonymized.path} has {len(names)} people of the attackers with {PICTURES} usable images or more, and "
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


def select_photographs(originals: FaceArchive, parts: Iterable[str]) -> Photographs:
    """All unprotected images of these parts, also those whose anonymization was refused."""
    rows = pd.concat([originals.select(part) for part in parts])
    return Photographs(originals.pictures(rows), rows["identity"].to_numpy(), rows["id"].to_numpy())


def _pairs(originals: FaceArchive, anonymized: FaceArchive, rows: pd.DataFrame) -> Pairs:
    sources = originals.index.set_index("id", drop=False).loc[rows["source_id"]]
    clear, changed = originals.pictures(sources), anonymized.pictures(rows)
    return Pairs(clear, changed, sources["identity"].to_numpy(), sources["id"].to_numpy())


@dataclass(frozen=True)
class EmbeddingSet:
    """Embedded images: ``embeddings`` (N, D), and for each the person and the id of its original, (N,)."""

    embeddings: np.ndarray
    people: np.ndarray
    ids: np.ndarray


@dataclass(frozen=True)
class Distances:
    """Of N probes: ``own`` (N,) to their person and ``strangers`` (N, P - 1) to the others, in any order.

    The distance to a person is that to the nearest image of the person. Infinite: the person has no image but the
    probe's own original.
    """

    own: np.ndarray
    strangers: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """The place of the right person, (N,), from 1; a stranger at the same distance comes before."""
        return 1 + (self.strangers <= self.own[:, None]).sum(axis=1)


def measure_euclidean(probes: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Euclidean distances (N, M) of embeddings (N, D) and (M, D)."""
    from scipy.spatial.distance import cdist

    return cdist(probes, gallery)


def measure_to_people(
    probes: EmbeddingSet, gallery: EmbeddingSet, compare: Compare = measure_euclidean
) -> tuple[np.ndarray, np.ndarray]:
    """The distances (N, P) to P people in the order of their names, and these names (P,).

    An image of the gallery with the same original as the probe does not count, so that the person decides and not the
    pose, light or background of one image. One image of every other person is left out, too: the nearest of more
    images is nearer by chance alone.
    """
    distances = compare(probes.embeddings, gallery.embeddings)
    names, numbers, counts = np.unique(gallery.people, return_inverse=True, return_counts=True)
    places = np.empty(len(numbers), dtype=np.int64)  # of an image among those of its person
    places[np.argsort(numbers, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    same = probes.ids[:, None] == gallery.ids[None, :]
    dropped = np.where(same.any(axis=1), places[same.argmax(axis=1)], -1)[:, None]
    several = counts[numbers]
    left_out = (dropped >= 0) & (several > 1) & (dropped % several == places)
    distances[same | left_out] = np.inf
    nearest = np.full((len(probes.ids), len(names)), np.inf)
    for number in range(len(names)):
        nearest[:, number] = distances[:, numbers == number].min(axis=1)
    return nearest, names


def measure_distances(
    probes: EmbeddingSet,
    gallery: EmbeddingSet,
    own_gallery: EmbeddingSet | None = None,
    compare: Compare = measure_euclidean,
) -> Distances:
    """The distances of probes to their person and to all others.

    ``own_gallery``: the images that stand for the probe's own person, if they are others than those of ``gallery``.
    Raises ProtocolError if a probe's person has no image in the gallery.
    """
    distances, names = measure_to_people(probes, gallery, compare)
    right = probes.people[:, None] == names[None, :]
    if not right.any(axis=1).all():
        missing = sorted(set(probes.people[~right.any(axis=1)]))
        raise ProtocolError(f"The gallery has no image of {len(missing)} people of the probes, such as {missing[0]}.")
    own = distances[right] if own_gallery is None else measure_distances(probes, own_gallery, compare=compare).own
    return Distances(own, distances[~right].reshape(len(distances), -1))


def measure_separability(distances: Distances) -> float:
    """How often the own person is nearer than a stranger (of any probe), the area under the ROC curve without ties.

    A tie does not count, as in `Distances.ranks`: a network that gives one embedding for all images, or none, has 0.
    Probes without a distance to their person do not count; 0 if none is left.
    """
    own, strangers = distances.own[np.isfinite(distances.own)], np.sort(distances.strangers.ravel())
    if not own.size or not strangers.size:
        return 0.0
    farther = len(strangers) - np.searchsorted(strangers, own, "right")
    return float(farther.mean() / len(strangers))
