"""LFW: 13,233 photographs of 5,749 people from the news, with ten folds of people and of pairs."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.core.errors import DatasetError, ParameterError
from masquerade.core.settings import Settings
from masquerade.faces import _splits
from masquerade.faces.photographs import celeba_lists
from masquerade.faces.photographs.published_dataset import ListedPicture, PublishedDataset, read_photograph
from masquerade.faces.photographs.trees import FolderTree, TarTree, Tree, check_files, first_existing

PEOPLE, PAIRS = "people.txt", "pairs.txt"
VERSIONS = {
    "raw": ("lfw", "lfw.tgz"),
    "funneled": ("lfw_funneled", "lfw-funneled.tgz"),
    "deepfunneled": ("lfw-deepfunneled", "lfw-deepfunneled.tgz"),
}
FOLDS = 10
OWN_LISTS = re.compile(r"pairs(_\d\d)?\.txt")  # some versions contain lists of their own; they are ignored


class LFW(PublishedDataset):
    """Huang et al. 2007 (Labeled Faces in the Wild): 250 x 250 pixels, each aligned here as FFHQ is.

    Verification thresholds are set on the people of some folds of view 2; the people of the other folds are tested.
    Columns: ``fold`` (1 to 10), and ``pairs``, the ids of the pictures with which pairs.txt pairs a picture. See
    docs/datasets.md.
    """

    title = "LFW"
    splits = ("validation", "test")

    class Params(Settings):
        path: str
        """The folder with people.txt, pairs.txt and the pictures: the archive of the version, or its folder."""
        version: Literal["raw", "funneled", "deepfunneled"]
        """raw: as cropped by a detector; funneled, deepfunneled: turned upright by the publishers."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (13,233: its publishers)."""
        validation_folds: list[int]
        """Folds of people.txt that set thresholds; they are not tested. Our choice: the papers test on all folds."""
        test_pictures: Annotated[int, Field(ge=0)]
        """Test pictures, of people chosen at random; 0: all (falco 4.1); 5,000: lreorg 4.1."""

    params: Params

    def tree(self) -> Tree:
        folder, archive = VERSIONS[self.params.version]
        path = first_existing(Path(self.params.path), [folder, archive])
        return TarTree(path) if path.suffix == ".tgz" else FolderTree(path.parent)

    def lists(self) -> list[Path]:
        return [first_existing(Path(self.params.path), [name]) for name in (PEOPLE, PAIRS)]

    def picture_folders(self) -> list[str]:
        return [VERSIONS[self.params.version][0]]

    def count(self, seed: int) -> dict[str, int]:
        """Pictures of each split, as if every fold had the same number of pictures."""
        folds = len(self.params.validation_folds)
        counts = _splits.share_out(self.params.pictures, {"validation": folds, "test": FOLDS - folds})
        return counts | ({"test": self.params.test_pictures} if self.params.test_pictures else {})

    def list_pictures(self, tree: Tree, seed: int) -> list[ListedPicture]:
        people_file, pairs_file = self.lists()
        folds = read_folds(celeba_lists.read_text(people_file))
        counts = {name: count for fold in folds for name, count in fold.items()}
        self.check_count(sum(counts.values()))
        top = self.picture_folders()[0]
        sizes = {name: size for name, size in tree.sizes(top).items() if not OWN_LISTS.fullmatch(name)}
        check_files(sizes, [file_of(name, k) for name in counts for k in range(1, counts[name] + 1)], tree.path / top)
        pairs = read_pairs(celeba_lists.read_text(pairs_file))
        split = self._splits(folds, seed)
        return [
            ListedPicture(
                f"{top}/{file_of(name, k)}",
                {
                    "id": id_of(name, k),
                    "identity": name,
                    "split": split[name],
                    "fold": number,
                    "pairs": pairs.get(id_of(name, k), []),
                },
            )
            for number, fold in enumerate(folds, start=1)
            for name in fold
            if name in split
            for k in range(1, counts[name] + 1)
        ]

    def _splits(self, folds: Sequence[dict[str, int]], seed: int) -> dict[str, str]:
        """person -> split, for the people of the validation folds and for those who are tested."""
        chosen = set(self.params.validation_folds)
        if not chosen < set(range(1, len(folds) + 1)):
            raise ParameterError(
                f"datasets.{self.name}.validation_folds is {self.params.validation_folds}; {PEOPLE} has the folds 1 to "
                f"{len(folds)}, and at least one must be left to test. Change the list in params.yaml."
            )
        validation = {name: "validation" for number in sorted(chosen) for name in folds[number - 1]}
        tested = {name: n for number, fold in enumerate(folds, 1) if number not in chosen for name, n in fold.items()}
        if self.params.test_pictures:
            split_of = _splits.deal(tested, {"test": self.params.test_pictures}, seed, self.name)
            tested = {name: n for name, n in tested.items() if split_of[name] == "test"}
        return validation | dict.fromkeys(tested, "test")

    def picture_reader(self, size: int) -> partial:
        return partial(read_photograph, size)


def file_of(name: str, number: int) -> str:
    """The file of a person's picture below the folder of the version; numbers start at 1."""
    return f"{name}/{name}_{number:04d}.jpg"


def id_of(name: str, number: int) -> str:
    """The id of a person's picture in the index."""
    return f"lfw-{name}-{number:04d}"


def read_folds(text: str) -> list[dict[str, int]]:
    """The folds of people.txt, each person -> number of images. Raises DatasetError if the list is cut.

    The file holds the number of folds, then for each fold its size and lines such as ``Aaron_Peirsol 4``.
    """
    lines = (line.split() for line in text.splitlines())
    try:
        folds = []
        for _ in range(int(next(lines)[0])):
            size = int(next(lines)[0])
            folds.append({name: int(count) for name, count in islice(lines, size)})
    except (StopIteration, ValueError, IndexError) as error:
        raise DatasetError(f"{PEOPLE} is cut or altered. Fetch it again.") from error
    return folds


def read_pairs(text: str) -> dict[str, list[str]]:
    """The pairs of pairs.txt: id of the first image -> ids of the second ones. Raises DatasetError if the list is cut.

    The file holds the number of folds and a number n. Then each fold has n pairs of one person (``name i k``) and n
    pairs of two people (``name i other k``).
    """
    (folds, number), *lines = (line.split() for line in text.splitlines() if line.strip())
    if len(lines) != int(folds) * int(number) * 2 or not all(len(words) in (3, 4) for words in lines):
        raise DatasetError(f"{PAIRS} does not list {folds} times {number} pairs of either kind. Fetch it again.")
    pairs: dict[str, list[str]] = {}
    for name, first, *other, second in lines:
        pairs.setdefault(id_of(name, int(first)), []).append(id_of(other[0] if other else name, int(second)))
    return pairs
