"""LFW: 13,233 photographs of 5,749 people from the news, with ten folds of people and of pairs."""

import re
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from masquerade.core.errors import DatasetError, ParameterError
from masquerade.core.settings import Settings
from masquerade.faces import _splits
from masquerade.faces.photographs.published_dataset import (
    ArchiveTree,
    FolderTree,
    ListedPicture,
    PublishedDataset,
    check_files,
    first_existing,
)

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
    Columns: ``fold`` (1 to 10), and ``pairs``, the ids of the images with which pairs.txt pairs an image. See
    docs/datasets.md.
    """

    title = "LFW"
    splits = ("validation", "test")

    class Params(Settings):
        path: str
        """The folder with people.txt, pairs.txt and the images, which are the archive of the chosen version or its
        folder."""
        version: Literal["raw", "funneled", "deepfunneled"]
        """raw has the images as a detector cropped them; funneled and deepfunneled have those that the publishers
        aligned."""
        pictures: PositiveInt
        """Number of images of the dataset. Any other number is an error (13,233: its publishers)."""
        validation_folds: list[int]
        """The folds of people.txt on which thresholds are set. They are not tested. Our choice: the papers test on all
        folds."""
        test_pictures: NonNegativeInt
        """Number of test images, of people chosen at random; 0 takes all, as falco section 4.1 does (5,000: lreorg
        4.1)."""

    params: Params

    def tree(self) -> FolderTree:
        path = first_existing(Path(self.params.path), VERSIONS[self.params.version])
        return ArchiveTree(path) if path.suffix == ".tgz" else FolderTree(path.parent)

    def lists(self) -> list[Path]:
        return [first_existing(Path(self.params.path), [name]) for name in (PEOPLE, PAIRS)]

    def picture_folders(self) -> list[str]:
        return [VERSIONS[self.params.version][0]]

    def count(self, seed: int) -> dict[str, int]:
        """Images of each split, as if every fold had the same number of images."""
        folds = len(self.params.validation_folds)
        counts = _splits.share_out(self.params.pictures, {"validation": folds, "test": FOLDS - folds})
        return counts | ({"test": self.params.test_pictures} if self.params.test_pictures else {})

    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        people_file, pairs_file = self.lists()
        people, pairs = read_people(people_file), read_pairs(pairs_file)
        self.check_count(people["count"].sum())
        top = self.picture_folders()[0]
        sizes = {name: size for name, size in tree.sizes(top).items() if not OWN_LISTS.fullmatch(name)}
        files = [file_of(name, k) for name, count in people["count"].items() for k in range(1, count + 1)]
        check_files(sizes, files, tree.path / top)
        return [
            ListedPicture(
                f"{top}/{file_of(name, k)}",
                {
                    "id": id_of(name, k),
                    "identity": name,
                    "split": split,
                    "fold": fold,
                    "pairs": pairs.get(id_of(name, k), []),
                },
            )
            for name, count, fold, split in self._choose(people, seed).itertuples()
            for k in range(1, count + 1)
        ]

    def _choose(self, people: pd.DataFrame, seed: int) -> pd.DataFrame:
        """The people of the validation folds and those who are tested, with their ``split``."""
        folds = set(self.params.validation_folds)
        if not folds < set(people["fold"]):
            raise ParameterError(
                f"datasets.{self.name}.validation_folds is {self.params.validation_folds}; {PEOPLE} has the folds 1 to "
                f"{people['fold'].max()}, and at least one must be left to test. Change the list in params.yaml."
            )
        validation = people["fold"].isin(folds)
        people["split"] = validation.map({True: "validation", False: "test"})
        if self.params.test_pictures:
            counts = people["count"][~validation].to_dict()
            split_of = _splits.deal(counts, {"test": self.params.test_pictures}, seed, self.name)
            people = people[validation | (people.index.map(split_of) == "test")]
        return people


def file_of(name: str, number: int) -> str:
    """The file of a person's image below the folder of the version; numbers start at 1."""
    return f"{name}/{name}_{number:04d}.jpg"


def id_of(name: str, number: int) -> str:
    """The id of a person's image in the index."""
    return f"lfw-{name}-{number:04d}"


def read_people(path: Path) -> pd.DataFrame:
    """The people of people.txt: ``count``, the number of their images, and ``fold``. Raises DatasetError.

    The file holds the number of folds, then for each fold its size and lines such as ``Aaron_Peirsol 4``.
    """
    try:
        table = pd.read_csv(path, sep=r"\s+", names=["name", "count"])
        heads = table["count"].isna()
        table["fold"] = heads.cumsum() - 1
        people = table[~heads].astype({"count": int}).set_index("name")
        sizes = [int(size) for size in table["name"][heads]]
    except ValueError as error:
        raise DatasetError(f"{PEOPLE} is cut or altered. Fetch it again.") from error
    if sizes != [people["fold"].nunique(), *people.groupby("fold").size()]:
        raise DatasetError(f"{PEOPLE} is cut or altered. Fetch it again.")
    return people


def read_pairs(path: Path) -> dict[str, list[str]]:
    """The pairs of pairs.txt: id of the first image -> ids of the second ones. Raises DatasetError if the list is cut.

    The file holds the number of folds and a number n. Then each fold has n pairs of one person (``name i k``) and n
    pairs of two people (``name i other k``).
    """
    (folds, number), *lines = (line.split() for line in path.read_text().splitlines() if line.strip())
    if len(lines) != int(folds) * int(number) * 2 or not all(len(words) in (3, 4) for words in lines):
        raise DatasetError(f"{PAIRS} does not list {folds} times {number} pairs of either kind. Fetch it again.")
    pairs: dict[str, list[str]] = {}
    for name, first, *other, second in lines:
        pairs.setdefault(id_of(name, int(first)), []).append(id_of(other[0] if other else name, int(second)))
    return pairs
