"""CASIA-WebFace: half a million photographs of ten thousand actors."""

import re
from collections import Counter
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from masquerade.core.errors import DatasetError
from masquerade.core.settings import Settings
from masquerade.faces import _splits
from masquerade.faces.photographs.published_dataset import FolderTree, ListedPicture, PublishedDataset

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
        pictures: PositiveInt
        """Number of images of the dataset. Any other number is an error (490,623: InsightFace; 494,414: Yi et al.
        2014)."""
        validation_pictures: NonNegativeInt
        """Number of images of the validation split, whose people are chosen at random. Our choice: no paper has one."""
        test_pictures: PositiveInt
        """Number of images of the test split, whose people are chosen at random. Our choice: cao21 shows some images in
        a figure."""
        splits: list[Literal["train", "validation", "test"]] = Field(min_length=1)
        """The splits that are read. The files of all splits must exist. No re-implemented method trains on this
        dataset."""

    params: Params

    def picture_folders(self) -> list[str]:
        return [TOP]

    def count(self, seed: int) -> dict[str, int]:
        p = self.params
        counts = {"validation": p.validation_pictures, "test": p.test_pictures}
        counts["train"] = p.pictures - sum(counts.values())
        return {split: counts[split] for split in p.splits}

    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        pictures = []
        for file in sorted(tree.sizes(TOP)):
            match = FILE.fullmatch(file)
            if not match:
                raise DatasetError(
                    f"{tree.path / TOP}/{file} is not named like an image of the set (0000045/001.jpg). Move it away."
                )
            pictures.append(match.groups())
        self.check_count(len(pictures))
        sizes = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
        split = _splits.deal(Counter(person for person, _ in pictures), sizes, seed, self.name)
        return [
            ListedPicture(
                f"{TOP}/{person}/{name}.jpg",
                {"id": f"casia-{person}-{name}", "identity": f"casia-{person}", "split": split[person]},
            )
            for person, name in pictures
            if split[person] in self.params.splits
        ]
