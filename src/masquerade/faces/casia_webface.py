"""CASIA-WebFace: half a million photographs of ten thousand actors."""

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.core.errors import DatasetError
from masquerade.core.settings import Settings
from masquerade.faces import _splits
from masquerade.faces.photographs.published_dataset import ListedPicture, PublishedDataset, read_photograph
from masquerade.faces.photographs.trees import FolderTree, Tree, first_existing

TOP = "CASIA-WebFace"
FILE = re.compile(r"(\w+)/(\w+)\.jpg")


class CasiaWebFace(PublishedDataset):
    """Yi et al. 2014 (arXiv:1411.7923): folders of people; each image is aligned here as FFHQ is.

    InsightFace publishes images of 112 x 112 pixels in one file, which its own script unpacks into such folders. They
    show less than FFHQ's square; the rest is padded with the mirror image. See docs/datasets.md.
    """

    title = "CASIA-WebFace"

    class Params(Settings):
        path: str
        """The folder with CASIA-WebFace/ and its folders of people."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (490,623: InsightFace; 494,414: Yi et al. 2014)."""
        validation_pictures: Annotated[int, Field(ge=0)]
        """Pictures of the validation split, to which people are dealt at random. Our choice: no paper has one."""
        test_pictures: Annotated[int, Field(ge=1)]
        """Pictures of the test split, to which people are dealt at random. Our choice: cao21 has some in a figure."""
        splits: Annotated[list[Literal["train", "validation", "test"]], Field(min_length=1)]
        """The splits that are read. The files of all splits must exist. No rebuilt method trains on this set."""

    params: Params

    def tree(self) -> Tree:
        return FolderTree(first_existing(Path(self.params.path), [TOP]).parent)

    def lists(self) -> list[Path]:
        return []

    def picture_folders(self) -> list[str]:
        return [TOP]

    def count(self, seed: int) -> dict[str, int]:
        p = self.params
        counts = {"validation": p.validation_pictures, "test": p.test_pictures}
        counts["train"] = p.pictures - sum(counts.values())
        return {split: counts[split] for split in p.splits}

    def list_pictures(self, tree: Tree, seed: int) -> list[ListedPicture]:
        pictures = _list_folders(tree)
        self.check_count(len(pictures))
        sizes = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
        split = _splits.deal(Counter(person for _, person, _ in pictures), sizes, seed, self.name)
        return [
            ListedPicture(file, {"id": f"casia-{person}-{name}", "identity": f"casia-{person}", "split": split[person]})
            for file, person, name in pictures
            if split[person] in self.params.splits
        ]

    def picture_reader(self, size: int) -> partial:
        return partial(read_photograph, size)


def _list_folders(tree: Tree) -> list[tuple[str, str, str]]:
    """(file, person, name) of every picture below the folders. Raises DatasetError for any other file."""
    pictures = []
    for file in sorted(tree.sizes(TOP)):
        match = FILE.fullmatch(file)
        if not match:
            raise DatasetError(
                f"{tree.path / TOP}/{file} is not named like a picture of the set (0000045/001.jpg). Move it away."
            )
        pictures.append((f"{TOP}/{file}", match[1], match[2]))
    return pictures
