"""FFHQ: 70,000 aligned faces without identities."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from masquerade.core.settings import Settings
from masquerade.faces.photographs.published_dataset import FolderTree, ListedPicture, PublishedDataset, check_files

A_FOLDER = 1000  # images in one folder
LICENSE = "LICENSE.txt"  # beside the images, from download_ffhq.py of the dataset's repository


class FFHQ(PublishedDataset):
    """Karras et al. 2019 (Flickr-Faces-HQ, arXiv:1812.04948): aligned PNGs, the first 60,000 for training.

    The identities are unknown. So a person may be in both splits, and no verification threshold can be set on this
    set. See docs/datasets.md.
    """

    title = "FFHQ"
    splits = ("train", "test")

    class Params(Settings):
        path: str
        """The folder that holds the folder of images."""
        version: Literal["images1024x1024", "thumbnails128x128"]
        """The folder of images: images1024x1024 at full size, or thumbnails128x128 as reduced by the publishers."""
        pictures: PositiveInt
        """Number of images of the dataset. Any other number is an error (70,000: its publishers)."""
        train_pictures: NonNegativeInt
        """Number of images, counted from the first, that form the train split; the others form the test split (60,000:
        its publishers)."""

    params: Params

    @property
    def aligned_side(self) -> int:
        return 1024 if self.params.version == "images1024x1024" else 128

    def picture_folders(self) -> list[str]:
        return [self.params.version]

    def count(self, seed: int) -> dict[str, int]:
        return {"train": self.params.train_pictures, "test": self.params.pictures - self.params.train_pictures}

    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        sizes = {name: size for name, size in tree.sizes(self.params.version).items() if name != LICENSE}
        flat = all("/" not in name for name in sizes)
        files = [
            f"{number:05d}.png" if flat else f"{number // A_FOLDER * A_FOLDER:05d}/{number:05d}.png"
            for number in range(self.params.pictures)
        ]
        check_files(sizes, files, tree.path / self.params.version)
        return [
            ListedPicture(
                f"{self.params.version}/{file}",
                {
                    "id": f"ffhq-{number:05d}",
                    "identity": "",
                    "split": "train" if number < self.params.train_pictures else "test",
                },
            )
            for number, file in enumerate(files)
        ]
