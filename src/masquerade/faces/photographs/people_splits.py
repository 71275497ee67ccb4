"""Splits that share no person."""

from collections.abc import Iterable, Mapping

from masquerade.core import seeding
from masquerade.core.errors import DatasetError, ParameterError


def deal(pictures: Mapping[str, int], sizes: Mapping[str, int], seed: int, dataset: str) -> dict[str, str]:
    """person -> split. ``pictures``: person -> number of pictures; ``sizes``: split -> number of pictures.

    People are shuffled. Each goes into the first split that still has room for all of their pictures, or else into
    train. Raises ParameterError when the sizes add up to more pictures than there are.
    """
    total = sum(pictures.values())
    if sum(sizes.values()) > total:
        raise ParameterError(
            f"datasets.{dataset}: the splits {' and '.join(sizes)} need {sum(sizes.values())} pictures, and the set "
            f"has {total}. Lower their numbers in params.yaml."
        )
    people = sorted(pictures)
    room, splits = dict(sizes), {}
    for index in seeding.generator(seed, "people", dataset).permutation(len(people)):
        person = people[index]
        split = next((name for name, left in room.items() if pictures[person] <= left), "train")
        splits[person] = split
        if split in room:
            room[split] -= pictures[person]
    return splits


def enlarge(
    splits: Mapping[str, str], pictures: Mapping[str, int], sizes: Mapping[str, int], seed: int, dataset: str
) -> dict[str, str]:
    """person -> split. People of train are dealt to other splits until these have ``sizes`` pictures.

    ``splits``: person -> published split; ``pictures``: person -> number of pictures. Nobody of a published test or
    validation split moves. Raises ParameterError if a published split is larger than its size.
    """
    room = dict(sizes)
    for person, split in splits.items():
        if split in room:
            room[split] -= pictures[person]
    for split, left in room.items():
        if left < 0:
            raise ParameterError(
                f"datasets.{dataset}: the published {split} split has {sizes[split] - left} pictures, and "
                f"{split}_pictures is {sizes[split]}. Its people may not be trained on, because datasets of the same "
                f"source test them or set thresholds on them. Raise {split}_pictures in params.yaml."
            )
    train = {person: pictures[person] for person, split in splits.items() if split == "train"}
    return {**splits, **deal(train, room, seed, dataset)}


def share_out(pictures: int, parts: Mapping[str, int]) -> dict[str, int]:
    """split -> number of pictures: ``pictures`` in the proportions of ``parts``, each rounded."""
    return {split: round(pictures * part / sum(parts.values())) for split, part in parts.items()}


def check_disjoint(people: Iterable[tuple[str, str]], lists: str) -> None:
    """Raise DatasetError when a person is in two splits. ``people``: (person, split) of every picture.

    ``lists``: the names of the files that say so, for the error text.
    """
    splits: dict[str, str] = {}
    for person, split in people:
        if splits.setdefault(person, split) != split:
            raise DatasetError(
                f"{lists}: {person} is in {splits[person]} and in {split}. The published splits share no person, so "
                "the lists are altered or of different versions. Fetch them again."
            )
