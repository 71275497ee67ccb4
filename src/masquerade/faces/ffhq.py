"""FFHQ: 70,000 aligned faces of people nobody named."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.faces._published import Listed, Published, look_at_aligned
from masquerade.faces._trees import FolderTree, Tree, found, same_files
from masquerade.settings import Settings

A_FOLDER = 1000  # pictures in one folder
LICENCE = "LICENSE.txt"  # beside the pictures: download_ffhq.py of the dataset's repository


class FFHQ(Published):
    """Karras et al. 2019 (Flickr-Faces-HQ, arXiv:1812.04948): aligned PNGs, the first 60,000 to train on.

    Who is in a picture is not known, so nothing says that a person is in one split alone, and no verification threshold
    can be set on it. docs/datasets.md.
    """

    title = "FFHQ"
    splits = ("train", "test")

    class Params(Settings):
        path: str
        """The folder that holds the folder of pictures."""
        version: Literal["images1024x1024", "thumbnails128x128"]
        """The folder of pictures: whole, or reduced by their publishers."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (70,000: its publishers)."""
        train_pictures: Annotated[int, Field(ge=0)]
        """The first pictures, which are the train split; the others are test (60,000: its publishers)."""

    def tree(self) -> Tree:
        return FolderTree(found(Path(self.params.path), [self.params.version]).parent)

    def lists(self) -> list[Path]:
        return []

    def watched(self) -> list[str]:
        return [self.params.version]

    def count(self, seed: int) -> dict[str, int]:
        return {"train": self.params.train_pictures, "test": self.params.pictures - self.params.train_pictures}

    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        there = {name: size for name, size in tree.sizes(self.params.version).items() if name != LICENCE}
        flat = all("/" not in name for name in there)
        files = [
            f"{number:05d}.png" if flat else f"{number // A_FOLDER * A_FOLDER:05d}/{number:05d}.png"
            for number in range(self.params.pictures)
        ]
        same_files(there, files, tree.path / self.params.version)
        return [
            Listed(
                f"{self.params.version}/{file}",
                {
                    "id": f"ffhq-{number:05d}",
                    "identity": "",
                    "split": "train" if number < self.params.train_pictures else "test",
                },
            )
            for number, file in enumerate(files)
        ]

    def looking(self, size: int) -> partial:
        return partial(look_at_aligned, (1024 if self.params.version == "images1024x1024" else 128,), size)
