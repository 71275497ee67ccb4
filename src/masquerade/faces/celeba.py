"""CelebA: 202,599 photographs of 10,177 celebrities, with 40 attributes."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field

from masquerade.core.errors import DatasetError
from masquerade.core.settings import Settings
from masquerade.faces import _splits
from masquerade.faces.photographs import celeba_lists
from masquerade.faces.photographs.published_dataset import ListedPicture, PublishedDataset, read_photograph
from masquerade.faces.photographs.trees import FolderTree, Tree, ZipTree, check_files, first_existing

OFFICIAL = {"train": 162770, "validation": 19867, "test": 19962}  # list_eval_partition.txt
ATTRIBUTES = "list_attr_celeba.txt"
LANDMARKS = {"img_align_celeba": "list_landmarks_align_celeba.txt", "img_celeba": "list_landmarks_celeba.txt"}
FIVE = [f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]


class CelebA(PublishedDataset):
    """Liu et al. 2015 (ICCV): photographs in the wild, or upright, as published; each is aligned here as FFHQ is.

    If several faces are detected, the five published landmarks decide which one is taken. See docs/datasets.md.
    """

    title = "CelebA"

    class Params(Settings):
        path: str
        """The folder of the dataset, with the sub-folders Anno/, Eval/ and Img/, or with their files."""
        version: Literal["img_align_celeba", "img_celeba"]
        """img_align_celeba: 178 x 218 pixels, a folder or its zip; img_celeba: in the wild, an unpacked folder."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (202,599: its publishers)."""
        splits: Annotated[list[Literal["train", "validation", "test"]], Field(min_length=1)]
        """The official parts that are read. The files of all parts must exist. No rebuilt method trains on CelebA."""

    params: Params

    def tree(self) -> Tree:
        root, name = Path(self.params.path), self.params.version
        archives = [f"{name}.zip", f"Img/{name}.zip"] if name == "img_align_celeba" else []
        path = first_existing(root, [name, f"Img/{name}", *archives])
        return ZipTree(path) if path.suffix == ".zip" else FolderTree(path.parent)

    def lists(self) -> list[Path]:
        names = (ATTRIBUTES, LANDMARKS[self.params.version], celeba_lists.IDENTITIES, celeba_lists.PARTITION)
        return [celeba_lists.find_list(Path(self.params.path), name) for name in names]

    def picture_folders(self) -> list[str]:
        return [self.params.version]

    def count(self, seed: int) -> dict[str, int]:
        counts = _splits.share_out(self.params.pictures, OFFICIAL)
        return {split: counts[split] for split in self.params.splits}

    def list_pictures(self, tree: Tree, seed: int) -> list[ListedPicture]:
        attributes, landmarks, *_ = self.lists()
        labels = celeba_lists.read_attributes(celeba_lists.read_text(attributes), attributes.name)
        middles = read_face_middles(celeba_lists.read_text(landmarks), landmarks.name)
        people = celeba_lists.read_people_and_splits(Path(self.params.path))
        self.check_count(len(labels))
        for table, name in ((middles, landmarks.name), (people, celeba_lists.IDENTITIES)):
            celeba_lists.check_same_files(pd.Index(labels), attributes.name, table.index, name)
        check_files(tree.sizes(self.params.version), labels, tree.path / self.params.version)
        person_of, split_of = people["person"].to_dict(), people["split"].to_dict()
        near = {file: (x, y) for file, x, y in middles.itertuples()}
        return [
            ListedPicture(
                f"{self.params.version}/{file}",
                {
                    "id": f"celeba-{Path(file).stem}",
                    "identity": person_of[file],
                    "split": split_of[file],
                    "caption": celeba_lists.caption(labels[file]),
                    **labels[file],
                },
                near=near[file],
            )
            for file in sorted(labels)
            if split_of[file] in self.params.splits
        ]

    def picture_reader(self, size: int) -> partial:
        return partial(read_photograph, size)


def read_face_middles(text: str, name: str) -> pd.DataFrame:
    """The mean of the five landmarks of each file, columns x and y in pixels. Raises DatasetError."""
    table = celeba_lists.read_table(text, name, skiprows=1)
    if list(table) != FIVE:
        raise DatasetError(f"{name} must have the columns {' '.join(FIVE)}. Fetch the list again.")
    return pd.DataFrame({"x": table[FIVE[::2]].sum(axis=1) / 5, "y": table[FIVE[1::2]].sum(axis=1) / 5})
