"""CelebA-HQ: 30,000 aligned faces of 1024 x 1024 pixels, as CelebAMask-HQ publishes them."""

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from masquerade.core.annotations import CLASSES
from masquerade.core.errors import DatasetError
from masquerade.core.settings import Settings
from masquerade.faces import _splits, celeba
from masquerade.faces.photographs.published_dataset import (
    ArchiveTree,
    FolderTree,
    ListedPicture,
    PublishedDataset,
    check_files,
    first_existing,
)

TOP, PICTURES, MASKS = "CelebAMask-HQ", "CelebA-HQ-img", "CelebAMask-HQ-mask-anno"
MAPPING, ATTRIBUTES = "CelebA-HQ-to-CelebA-mapping.txt", "CelebAMask-HQ-attribute-anno.txt"
OFFICIAL = {"train": 24183, "validation": 2993, "test": 2824}  # of 30,000, by the lists (eurecom-ds/celeba_hq_mask)
A_FOLDER = 2000  # images whose masks are in one folder
PARTS = CLASSES[1:]  # of the masks; the code of the published parser draws them in this order, later ones on top


class CelebAHQ(PublishedDataset):
    """Karras et al. 2018 (arXiv:1710.10196), in the layout of CelebAMask-HQ (Lee et al. 2020): a folder or its zip.

    The person and the official part of an image are those of the CelebA image from which it was made. See
    docs/datasets.md.
    """

    title = "CelebA-HQ"

    class Params(Settings):
        path: str
        """The folder with CelebAMask-HQ.zip, or with the content of that zip."""
        celeba: str
        """The folder with CelebA's identity_CelebA.txt and list_eval_partition.txt."""
        pictures: PositiveInt
        """Number of images of the dataset. Any other number is an error (30,000: Karras et al. 2018)."""
        split: Literal["official", "enlarged"]
        """official uses the splits of CelebA (falco section 4.1). enlarged moves further people of the train split to
        the test and validation splits until these have the sizes below."""
        validation_pictures: NonNegativeInt
        """Number of images of an enlarged validation split (2,993: the official one); no paper has one."""
        test_pictures: PositiveInt
        """Number of images of an enlarged test split (3,000: identitydp V.A, cao21 5.1; 5,000: lreorg 4.1)."""
        masks: bool
        """Whether the parsing masks of CelebAMask-HQ are read. The face parser is trained and tested on them."""

    params: Params

    @property
    def aligned_side(self) -> int:
        return 1024

    def tree(self) -> FolderTree:
        path = first_existing(Path(self.params.path), [PICTURES, f"{TOP}/{PICTURES}", f"{TOP}.zip"])
        if path.suffix == ".zip":
            return ArchiveTree(path, TOP)
        for name in (MAPPING, ATTRIBUTES, *self.picture_folders()):
            first_existing(path.parent, [name])
        return FolderTree(path.parent)

    def lists(self) -> list[Path]:
        tree, names = self.tree(), (celeba.IDENTITIES, celeba.PARTITION)
        beside = [] if isinstance(tree, ArchiveTree) else [tree.path / name for name in (MAPPING, ATTRIBUTES)]
        return [*beside, *(celeba.find_list(Path(self.params.celeba), name) for name in names)]

    def picture_folders(self) -> list[str]:
        return [PICTURES, MASKS] if self.params.masks else [PICTURES]

    def count(self, seed: int) -> dict[str, int]:
        p = self.params
        if p.split == "official":
            return _splits.share_out(p.pictures, OFFICIAL)
        sizes = {"validation": p.validation_pictures, "test": p.test_pictures}
        return {"train": p.pictures - sum(sizes.values()), **sizes}

    def list_pictures(self, tree: FolderTree, seed: int) -> list[ListedPicture]:
        originals = read_mapping(tree.read(MAPPING))
        self.check_count(len(originals))
        labels = celeba.read_labels(tree.read(ATTRIBUTES), ATTRIBUTES)
        files = [f"{number}.jpg" for number in range(len(originals))]
        celeba.check_same_files(labels.keys(), ATTRIBUTES, files, MAPPING)
        check_files(tree.sizes(PICTURES), files, tree.path / PICTURES)
        lists = celeba.read_people_and_splits(Path(self.params.celeba))
        missing = sorted(set(originals).difference(lists.index))
        if missing:
            raise DatasetError(f"{MAPPING} names {missing[0]}, which is not in {celeba.IDENTITIES}. Fetch both again.")
        people, splits = (lists.loc[originals, column].tolist() for column in ("person", "split"))
        split_of = dict(zip(people, splits, strict=True))
        if self.params.split == "enlarged":
            sizes = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
            split_of = _splits.enlarge(split_of, Counter(people), sizes, seed, self.name)
        parts = tree.sizes(MASKS) if self.params.masks else {}
        return [
            ListedPicture(
                f"{PICTURES}/{file}",
                {
                    "id": f"celeba_hq-{number:05d}",
                    "identity": person,
                    "split": split_of[person],
                    "original": original,
                    **labels[file],
                },
                parts=mask_parts(number, parts) if self.params.masks else (),
            )
            for number, (file, original, person) in enumerate(zip(files, originals, people, strict=True))
        ]


def read_mapping(content: bytes) -> list[str]:
    """CelebA's file of each image, in order, from lines ``idx orig_idx orig_file`` below a header.

    Raises DatasetError if the images are not numbered from 0.
    """
    table = celeba.read_table(content, MAPPING, ["orig_idx", "orig_file"])
    if table.index.tolist() != list(range(len(table))):
        raise DatasetError(f"{MAPPING} must have a line for each of the images 0, 1 and so on. Fetch it again.")
    return table["orig_file"].tolist()


def mask_parts(number: int, files: dict[str, int]) -> tuple[tuple[int, str], ...]:
    """(class, file) of the parts of an image's mask, in the order of the classes. ``files``: of all masks.

    Raises DatasetError when the image has no file for the skin.
    """
    names = [f"{number // A_FOLDER}/{number:05d}_{part}.png" for part in PARTS]
    if names[0] not in files:
        raise DatasetError(f"{MASKS} has no {names[0]}. Unpack the set again, or set datasets.celeba_hq.masks: false.")
    return tuple((label, f"{MASKS}/{name}") for label, name in enumerate(names, start=1) if name in files)
