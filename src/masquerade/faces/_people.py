"""Splits of people: nobody is in two of them."""

from collections.abc import Iterable, Mapping

from masquerade import seeding
from masquerade.errors import DatasetError, ParameterError


def dealt(pictures: Mapping[str, int], wanted: Mapping[str, int], seed: int, dataset: str) -> dict[str, str]:
    """person -> split. ``pictures``: how many there are of each; ``wanted``: split -> pictures, the rest is train.

    People are shuffled; each goes into the first split that still has room for all of their pictures. Raises
    ParameterError where more pictures are wanted than there are.
    """
    total = sum(pictures.values())
    if sum(wanted.values()) > total:
        raise ParameterError(
            f"datasets.{dataset}: {sum(wanted.values())} pictures are wanted for {' and '.join(wanted)}, and there are "
            f"{total}."
        )
    people = sorted(pictures)
    room, found = dict(wanted), {}
    for place in seeding.generator(seed, "people", dataset).permutation(len(people)):
        person = people[place]
        split = next((name for name, left in room.items() if pictures[person] <= left), "train")
        found[person] = split
        if split in room:
            room[split] -= pictures[person]
    return found


def check_disjoint(people: Iterable[tuple[str, str]], lists: str) -> None:
    """``people``: (person, split) of every picture. Raises DatasetError where somebody is in two splits."""
    seen: dict[str, str] = {}
    for person, split in people:
        if seen.setdefault(person, split) != split:
            raise DatasetError(
                f"{lists}: {person} is in {seen[person]} and in {split}. Splits of the published lists share nobody: "
                "these are altered, or of different versions. Fetch them again."
            )
