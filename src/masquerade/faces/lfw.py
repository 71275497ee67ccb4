"""LFW: 13,233 photographs of 5,749 people from the news, with ten folds of people and of pairs."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.errors import DatasetError, ParameterError
from masquerade.faces import _celeba, _lists, _people
from masquerade.faces._published import Detection, Listed, Published, look_at_photograph
from masquerade.faces._trees import FolderTree, TarTree, Tree, found, same_files
from masquerade.settings import Settings

PEOPLE, PAIRS = "people.txt", "pairs.txt"
VERSIONS = {
    "raw": ("lfw", "lfw.tgz"),
    "funneled": ("lfw_funneled", "lfw-funneled.tgz"),
    "deepfunneled": ("lfw-deepfunneled", "lfw-deepfunneled.tgz"),
}
OWN_LISTS = re.compile(r"pairs(_\d\d)?\.txt")  # some versions bring lists of their own; the path's are read


class LFW(Published):
    """Huang et al. 2007 (Labeled Faces in the Wild): 250 x 250 pixels, each aligned here as FFHQ is.

    The people of some of the folds of view 2 set verification thresholds, those of the others are tested. Columns:
    ``fold`` (1 to 10), and ``pairs``: the pictures with which a picture is paired in pairs.txt. docs/datasets.md.
    """

    title = "LFW"
    splits = ("validation", "test")

    class Params(Settings):
        path: str
        """The folder with people.txt, pairs.txt and the pictures: the archive of the version, or its folder."""
        version: Literal["raw", "funneled", "deepfunneled"]
        """raw: as cut out by a detector; funneled, deepfunneled: turned upright by their publishers before."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (13,233: its publishers)."""
        validation_folds: list[int]
        """Folds of people.txt whose people set thresholds, and are not tested. Ours: the papers test on all."""
        test_pictures: Annotated[int, Field(ge=0)]
        """Pictures that are tested, of people drawn at random; 0: all (falco 4.1); 5,000: lreorg 4.1."""
        detection: Detection
        """How faces are found."""

    def tree(self) -> Tree:
        folder, archive = VERSIONS[self.params.version]
        place = found(Path(self.params.path), [folder, archive])
        return TarTree(place) if place.suffix == ".tgz" else FolderTree(place.parent)

    def lists(self) -> list[Path]:
        return [found(Path(self.params.path), [name]) for name in (PEOPLE, PAIRS)]

    def watched(self) -> list[str]:
        return [VERSIONS[self.params.version][0]]

    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        people_file, pairs_file = self.lists()
        folds = people(_celeba.text_of(people_file), PEOPLE)
        counts = {name: count for fold in folds for name, count in fold.items()}
        self.check_count(sum(counts.values()))
        top = self.watched()[0]
        there = {name: size for name, size in tree.sizes(top).items() if not OWN_LISTS.fullmatch(name)}
        same_files(there, [file_of(name, k) for name in counts for k in range(1, counts[name] + 1)], tree.path / top)
        paired = pairs(_celeba.text_of(pairs_file), PAIRS, counts)
        split = self._splits(folds, seed)
        return [
            Listed(
                f"{top}/{file_of(name, k)}",
                {
                    "id": id_of(name, k),
                    "identity": name,
                    "split": split[name],
                    "fold": number,
                    "pairs": paired.get(id_of(name, k), []),
                },
            )
            for number, fold in enumerate(folds, start=1)
            for name in fold
            if name in split
            for k in range(1, counts[name] + 1)
        ]

    def _splits(self, folds: Sequence[dict[str, int]], seed: int) -> dict[str, str]:
        """person -> split; people who are in neither are not there."""
        chosen = set(self.params.validation_folds)
        if not chosen < set(range(1, len(folds) + 1)):
            raise ParameterError(
                f"datasets.{self.name}.validation_folds is {self.params.validation_folds}; {PEOPLE} has the folds 1 to "
                f"{len(folds)}, and at least one must be left to test."
            )
        held = {name: "validation" for number in sorted(chosen) for name in folds[number - 1]}
        tested = {name: n for number, fold in enumerate(folds, 1) if number not in chosen for name, n in fold.items()}
        if self.params.test_pictures:
            dealt = _people.dealt(tested, {"test": self.params.test_pictures}, seed, self.name)
            tested = {name: n for name, n in tested.items() if dealt[name] == "test"}
        return held | dict.fromkeys(tested, "test")

    def looking(self, size: int) -> partial:
        return partial(look_at_photograph, self.params.detection, size)


def file_of(name: str, number: int) -> str:
    return f"{name}/{name}_{number:04d}.jpg"


def id_of(name: str, number: int) -> str:
    return f"lfw-{name}-{number:04d}"


def people(text: str, name: str) -> list[dict[str, int]]:
    """Folds, each person -> number of pictures: the number of folds, then for each its size and its people.

    Raises DatasetError.
    """
    body = _lists.rows(text, name)
    folds: list[dict[str, int]] = []
    seen: set[str] = set()
    at = 1
    for _ in range(_single(body, 0, name)):
        size = _single(body, at, name)
        fold = {}
        for line, words in body[at + 1 : at + 1 + size]:
            if len(words) != 2:
                raise DatasetError(f"{name}, line {line}: a person and a number belong here. Fetch the list again.")
            if words[0] in seen:
                raise DatasetError(f"{name}, line {line}: {words[0]} is listed twice. Fetch the list again.")
            seen.add(words[0])
            fold[words[0]] = _lists.whole(words[1], name, line)
        if len(fold) != size:
            raise DatasetError(f"{name} announces {size} people in fold {len(folds) + 1} and lists {len(fold)}.")
        folds.append(fold)
        at += 1 + size
    if at < len(body):
        raise DatasetError(f"{name}, line {body[at][0]}: nothing belongs behind the last fold. Fetch the list again.")
    return folds


def _single(body: list[tuple[int, list[str]]], at: int, name: str) -> int:
    if at >= len(body):
        raise DatasetError(f"{name} ends before its last fold. Fetch the list again.")
    line, words = body[at]
    if len(words) != 1:
        raise DatasetError(f"{name}, line {line}: a number should stand here, alone. Fetch the list again.")
    return _lists.whole(words[0], name, line)


def pairs(text: str, name: str, counts: dict[str, int]) -> dict[str, list[str]]:
    """id of the first -> ids of the second pictures: folds and pairs a fold, then that many of one person each

    (``name i k``) and that many of two (``name i other k``), fold by fold. Raises DatasetError.
    """
    (line, head), *body = _lists.rows(text, name)
    if len(head) != 2:
        raise DatasetError(f"{name}, line {line}: the numbers of folds and of pairs belong here. Fetch it again.")
    folds, each = (_lists.whole(word, name, line) for word in head)
    if len(body) != folds * each * 2:
        raise DatasetError(f"{name} announces {folds} times {2 * each} pairs and lists {len(body)}. Fetch it again.")
    found: dict[str, list[str]] = {}
    for place, (line, words) in enumerate(body):
        same = place % (2 * each) < each
        if len(words) != (3 if same else 4):
            raise DatasetError(
                f"{name}, line {line}: a pair of {'one' if same else 'two'} belongs here. Fetch it again."
            )
        first, second = ((words[0], words[1]), (words[0] if same else words[2], words[-1]))
        for person, number in (first, second):
            if not 1 <= _lists.whole(number, name, line) <= counts.get(person, 0):
                raise DatasetError(
                    f"{name}, line {line}: {PEOPLE} has no picture {number} of {person}. Fetch both again."
                )
        ids = [id_of(person, int(number)) for person, number in (first, second)]
        found.setdefault(ids[0], []).append(ids[1])
    return found
