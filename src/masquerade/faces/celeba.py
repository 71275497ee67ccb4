"""CelebA: 202,599 photographs of 10,177 celebrities, with 40 attributes; and its lists, which CelebA-HQ shares.

``identity_CelebA.txt`` and ``list_eval_partition.txt`` have lines ``000001.jpg 2880``. A ``list_*`` file has the number
of files, the names of the columns, and lines such as ``000001.jpg -1 1 ...``.
"""

import io
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from masquerade.core import annotations
from masquerade.core.errors import DatasetError
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

OFFICIAL = {"train": 162770, "validation": 19867, "test": 19962}  # list_eval_partition.txt
IDENTITIES, PARTITION, LABELS = "identity_CelebA.txt", "list_eval_partition.txt", "list_attr_celeba.txt"
LANDMARKS = {"img_align_celeba": "list_landmarks_align_celeba.txt", "img_celeba": "list_landmarks_celeba.txt"}
FIVE = [f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]
ATTRIBUTES = frozenset([*annotations.INNER, *annotations.OUTER, "Attractive", "Blurry"])
SPLITS = {0: "train", 1: "validation", 2: "test"}  # the numbers of list_eval_partition.txt
# The words of a caption for an attribute.
COLORS = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown", "Gray_Hair": "gray"}
DETAILS = {
    "Bald": "a bald head",
    "Receding_Hairline": "a receding hairline",
    "Bangs": "bangs",
    "Bushy_Eyebrows": "bushy eyebrows",
    "Goatee": "a goatee",
    "Mustache": "a mustache",
    "5_o_Clock_Shadow": "stubble",
}
WORN = {
    "Eyeglasses": "eyeglasses",
    "Wearing_Hat": "a hat",
    "Wearing_Lipstick": "lipstick",
    "Wearing_Earrings": "earrings",
    "Wearing_Necklace": "a necklace",
    "Wearing_Necktie": "a necktie",
}


class CelebA(PublishedDataset):
    """Liu et al. 2015 (ICCV): photographs in the wild, or upright, as published; each is aligned here as FFHQ is.

    If several faces are detected, the five published landmarks decide which one is taken. See docs/datasets.md.
    """

    title = "CelebA"

    class Params(Settings):
        path: str
        """The folder of the dataset, with the sub-folders Anno/, Eval/ and Img/, or with their files."""
        version: Literal["img_align_celeba", "img_celeba"]
        """img_align_celeba has aligned images of 178 x 218 pixels, as a folder or its zip; img_celeba has the images in
        the wild, as an unpacked folder."""
        pictures: PositiveInt
        """Number of images of the dataset. Any other number is an error (202,599: its publishers)."""
        splits: list[Literal["train", "validation", "test"]] = Field(min_length=1)
        """The official splits that are read. The files of all splits must exist. No re-implemented method trains on
        CelebA."""

    params: Params

    def tree(self) -> FolderTree:
        name = self.params.version
        path = first_existing(Path(self.params.path), [name, f"Img/{name}", f"{name}.zip", f"Img/{name}.zip"])
        return ArchiveTree(path) if path.suffix == ".zip" else FolderTree(path.parent)

    def lists(self) -> list[Path]:
        names = (LABELS, LANDMARKS[self.params.version], IDENTITIES, PARTITION)
        return [find_list(Path(self.params.path), name) for name in names]

    def picture_folders(self) -> list[str]:
        return [self.params.version]

    def count(self, seed: int) -> dict[str, int]:
        counts = _splits.share_out(self.params.pictures, OFFICIAL)
        return {split: counts[split] for split in self.params.splits}

    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        folder = self.params.version
        attributes, landmarks, *_ = self.lists()
        labels = read_labels(attributes.read_bytes(), LABELS)
        points = read_table(landmarks.read_bytes(), landmarks.name, FIVE, skiprows=1)
        people = read_people_and_splits(Path(self.params.path))
        self.check_count(len(labels))
        for table, name in ((points, landmarks.name), (people, IDENTITIES)):
            check_same_files(labels.keys(), LABELS, table.index, name)
        check_files(tree.sizes(folder), labels, tree.path / folder)
        people["x"] = points[FIVE[::2]].sum(axis=1) / 5
        people["y"] = points[FIVE[1::2]].sum(axis=1) / 5
        people = people[people["split"].isin(self.params.splits)].sort_index()
        return [
            ListedPicture(
                f"{folder}/{file}",
                {"id": f"celeba-{Path(file).stem}", "identity": person, "split": split, **labels[file]},
                near=(x, y),
            )
            for file, person, split, x, y in people.itertuples()
        ]


def find_list(root: Path, name: str) -> Path:
    """The list in ``root``, or in the sub-folder in which it is published. Raises DatasetError if it is missing."""
    return first_existing(root, [name, f"{'Eval' if name == PARTITION else 'Anno'}/{name}"])


def read_table(content: bytes, name: str, columns: Collection[str], **options: Any) -> pd.DataFrame:
    """The rows of a list, whose words stand between spaces, by their first column. ``options``: of `pandas.read_csv`.

    Raises DatasetError for a list that is cut, has other columns, or names a file twice.
    """
    try:
        table = pd.read_csv(io.BytesIO(content), sep=r"\s+", index_col=0, **options)
    except ValueError as error:
        raise DatasetError(f"{name} is damaged ({error}). Fetch it again.") from error
    if set(table) != set(columns):
        raise DatasetError(f"{name} must have the columns {' '.join(sorted(columns))}. Fetch it again.")
    if not table.index.is_unique or table.isna().any(axis=None):
        raise DatasetError(f"{name} names a file twice, or a line of it is cut. Fetch it again.")
    return table


def read_people_and_splits(root: Path) -> pd.DataFrame:
    """The columns ``person`` and ``split`` of all images of CelebA; the index is the file, ``000001.jpg`` and so on.

    A person has the same name in CelebA and CelebA-HQ. Raises DatasetError if the lists do not fit each other, or if
    two of the official parts share a person.
    """
    numbers, parts = (
        read_table(find_list(root, name).read_bytes(), name, ["number"], header=None, names=["file", "number"])
        for name in (IDENTITIES, PARTITION)
    )
    check_same_files(numbers.index, IDENTITIES, parts.index, PARTITION)
    table = pd.DataFrame({"person": "celeba-" + numbers["number"].astype(str), "split": parts["number"].map(SPLITS)})
    if table["split"].isna().any():
        raise DatasetError(f"{PARTITION} has another part than 0, 1 and 2. Fetch the list again.")
    counts = table.groupby("person")["split"].nunique()
    if counts.max() > 1:
        raise DatasetError(
            f"{IDENTITIES}, {PARTITION}: {counts.idxmax()} is in several splits. The published splits share no person, "
            "so the lists are altered or of different versions. Fetch them again."
        )
    return table


def read_labels(content: bytes, name: str) -> dict[str, dict[str, Any]]:
    """file -> its ``caption`` and ``attribute.<name>``, whether it has each; of a ``list_*`` file of 1 and -1."""
    table = read_table(content, name, ATTRIBUTES, skiprows=1)
    attributes = (table == 1).add_prefix(annotations.ANNOTATION).to_dict("index")
    return {file: {"caption": write_caption(labels), **labels} for file, labels in attributes.items()}


def check_same_files(first: Collection[str], first_name: str, second: Collection[str], second_name: str) -> None:
    """Raise DatasetError when two lists do not name the same files."""
    apart = sorted(set(first).symmetric_difference(second))
    if apart:
        raise DatasetError(
            f"{first_name} and {second_name} do not name the same files: {len(apart)} are in one list only (the first: "
            f"{apart[0]}). The lists are of different versions. Fetch both again."
        )


def write_caption(attributes: dict[str, bool]) -> str:
    """A sentence made from the attributes of an image, in the words of the captions of rendered faces."""
    has = {name.removeprefix(annotations.ANNOTATION): value for name, value in attributes.items()}
    who = f"{'young' if has['Young'] else 'old'} {'man' if has['Male'] else 'woman'}"
    form = [word for name, word in (("Straight_Hair", "straight"), ("Wavy_Hair", "wavy")) if has[name]]
    color = [word for name, word in COLORS.items() if has[name]]
    details = ["very light skin"] * has["Pale_Skin"]
    details += [" ".join([*form, *color, "hair"])] * bool((form or color) and not has["Bald"])
    details += [words for name, words in DETAILS.items() if has[name]]
    shaven = has["No_Beard"] or any(has[name] for name in ("Goatee", "Mustache", "5_o_Clock_Shadow"))
    details += [] if shaven else ["a beard"]
    worn = [words for name, words in WORN.items() if has[name]]
    wearing = f", wearing {_join(worn)}" if worn else ""
    mood = "smiling" if has["Smiling"] else "with a neutral expression"
    mouth = ", mouth slightly open" if has["Mouth_Slightly_Open"] else ""
    looks = f" with {_join(details)}" if details else ""
    return f"{'A' if has['Young'] else 'An'} {who}{looks}{wearing}, {mood}{mouth}."


def _join(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
