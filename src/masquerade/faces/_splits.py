"""Splits that share no person: how many people and images each has, and how people are dealt to them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from masquerade.core import seeding
from masquerade.core.errors import DatasetError, ParameterError
from masquerade.core.settings import Settings, Share


class Identities(Settings):
    """Number of people in each split. No person is in two of them."""

    train: int
    """Number of people in the train split. Our choice: CelebA has 8192 (falco uses 10,177 in all)."""
    validation: int
    """Number of people in the validation split, on whom thresholds are chosen."""
    test: int
    """Number of people in the test split, whose images are anonymized."""


class SplitCounts(Settings):
    """A count for each split."""

    train: PositiveInt
    """Number for a person of the train split."""
    validation: PositiveInt
    """Number for a person of the validation split."""
    test: PositiveInt
    """Number for a person of the test split."""


class FewImages(Settings):
    """How many images the people of a dataset have, most of whom have one."""

    single_share: Share
    """Share of people with a single image (0.71: LFW, 4069 of 5749 people)."""
    pictures_most: PositiveInt
    """Largest number of images of a person. The probability of 2, 3, 4, ... images halves each time. LFW has up to
    530."""

    def draw_count(self, draws: np.random.Generator) -> int:
        """The number of images of one person."""
        if draws.random() < self.single_share:
            return 1
        return int(min(1 + draws.geometric(0.5), self.pictures_most))


def deal(pictures: Mapping[str, int], sizes: Mapping[str, int], seed: int, dataset: str) -> dict[str, str]:
    """person -> split. ``pictures``: person -> number of images; ``sizes``: split -> number of images.

    People are shuffled. Each goes into the first split that still has room for all of their images, or else into
    train. Raises ParameterError when the sizes add up to more images than there are.
    """
    total = sum(pictures.values())
    if sum(sizes.values()) > total:
        raise ParameterError(
            f"datasets.{dataset}: the splits {' and '.join(sizes)} need {sum(sizes.values())} images, and the set "
            f"has {total}. Lower their numbers in params.yaml."
        )
    people = sorted(pictures)
    room, splits = dict(sizes), {}
    for index in seeding.make_generator(seed, "people", dataset).permutation(len(people)):
        person = people[index]
        split = next((name for name, space in room.items() if pictures[person] <= space), "train")
        splits[person] = split
        if split in room:
            room[split] -= pictures[person]
    return splits


def enlarge(
    splits: Mapping[str, str], pictures: Mapping[str, int], sizes: Mapping[str, int], seed: int, dataset: str
) -> dict[str, str]:
    """person -> split. People of train are dealt to other splits until these have ``sizes`` images.

    ``splits``: person -> published split; ``pictures``: person -> number of images. Nobody of a published test or
    validation split moves. Raises ParameterError if a published split is larger than its size.
    """
    room = dict(sizes)
    for person, split in splits.items():
        if split in room:
            room[split] -= pictures[person]
    for split, space in room.items():
        if space < 0:
            raise ParameterError(
                f"datasets.{dataset}: the published {split} split has {sizes[split] - space} images, and "
                f"{split}_pictures is {sizes[split]}. Its people may not be trained on, because datasets of the same "
                f"source test them or set thresholds on them. Raise {split}_pictures in params.yaml."
            )
    train = {person: pictures[person] for person, split in splits.items() if split == "train"}
    return {**splits, **deal(train, room, seed, dataset)}


def share_out(pictures: int, parts: Mapping[str, int]) -> dict[str, int]:
    """split -> number of images: ``pictures`` in the proportions of ``parts``, each rounded."""
    return {split: round(pictures * part / sum(parts.values())) for split, part in parts.items()}


def check_disjoint(people: pd.Series, splits: pd.Series, lists: str) -> None:
    """Raise DatasetError when a person is in two splits. ``people``, ``splits``: of every image.

    ``lists``: the names of the files that say so, for the error text.
    """
    counts = splits.groupby(people).nunique()
    if counts.max() > 1:
        raise DatasetError(
            f"{lists}: {counts.idxmax()} is in several splits. The published splits share no person, so the lists are "
            "altered or of different versions. Fetch them again."
        )
