"""CelebA-HQ: 30,000 aligned faces of 1024 x 1024 pixels, as CelebAMask-HQ publishes them."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.core.annotations import CLASSES
from masquerade.core.errors import DatasetError
from masquerade.core.settings import Settings
from masquerade.faces.photographs import celeba_lists, lists, people_splits
from masquerade.faces.photographs.published_dataset import ListedPicture, PublishedDataset, read_aligned
from masquerade.faces.photographs.trees import FolderTree, Tree, ZipTree, check_files, first_existing

TOP, PICTURES, MASKS = "CelebAMask-HQ", "CelebA-HQ-img", "CelebAMask-HQ-mask-anno"
MAPPING, ATTRIBUTES = "CelebA-HQ-to-CelebA-mapping.txt", "CelebAMask-HQ-attribute-anno.txt"
OFFICIAL = {"train": 24183, "validation": 2993, "test": 2824}  # of 30,000, by the lists (eurecom-ds/celeba_hq_mask)
A_FOLDER = 2000  # pictures whose masks are in one folder
PARTS = CLASSES[1:]  # of the masks; the code of the published parser draws them in this order, later ones on top


class CelebAHQ(PublishedDataset):
    """Karras et al. 2018 (arXiv:1710.10196), in the layout of CelebAMask-HQ (Lee et al. 2020): a folder or its zip.

    The person and the official part of a picture are those of the CelebA picture from which it was made. See
    docs/datasets.md.
    """

    title = "CelebA-HQ"

    class Params(Settings):
        path: str
        """The folder with CelebAMask-HQ.zip, or with the content of that zip."""
        celeba: str
        """The folder with CelebA's identity_CelebA.txt and list_eval_partition.txt."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (30,000: Karras et al. 2018)."""
        split: Literal["official", "enlarged"]
        """official: CelebA's parts (falco section 4.1); enlarged: these parts, and further people of the train part are
        dealt to test and validation until these have the sizes below."""
        validation_pictures: Annotated[int, Field(ge=0)]
        """Pictures of the validation split if it is enlarged (2,993: the official part); no paper has one."""
        test_pictures: Annotated[int, Field(ge=1)]
        """Pictures of the test split if it is enlarged (3,000: identitydp V.A, cao21 5.1; 5,000: lreorg 4.1)."""
        masks: bool
        """Read the parsing masks of CelebAMask-HQ; the parser is trained or judged on them."""

    params: Params

    def tree(self) -> Tree:
        root = Path(self.params.path)
        path = first_existing(root, [PICTURES, f"{TOP}/{PICTURES}", f"{TOP}.zip"])
        if path.suffix == ".zip":
            return ZipTree(path, TOP)
        for name in (MAPPING, ATTRIBUTES, *([MASKS] if self.params.masks else [])):
            first_existing(path.parent, [name])
        return FolderTree(path.parent)

    def lists(self) -> list[Path]:
        root = Path(self.params.celeba)
        tree = self.tree()
        own = [tree.path / name for name in (MAPPING, ATTRIBUTES)] if isinstance(tree, FolderTree) else []
        names = (celeba_lists.IDENTITIES, celeba_lists.PARTITION)
        return [*own, *(celeba_lists.find_list(root, name) for name in names)]

    def picture_folders(self) -> list[str]:
        return [PICTURES, MASKS] if self.params.masks else [PICTURES]

    def count(self, seed: int) -> dict[str, int]:
        p = self.params
        if p.split == "official":
            return people_splits.share_out(p.pictures, OFFICIAL)
        sizes = {"validation": p.validation_pictures, "test": p.test_pictures}
        return {"train": p.pictures - sum(sizes.values()), **sizes}

    def list_pictures(self, tree: Tree, seed: int) -> list[ListedPicture]:
        originals = mapping(tree.text(MAPPING), MAPPING)
        self.check_count(len(originals))
        known = celeba_lists.attributes(tree.text(ATTRIBUTES), ATTRIBUTES)
        files = [f"{number}.jpg" for number in range(len(originals))]
        lists.check_same_files(known, ATTRIBUTES, dict.fromkeys(files), MAPPING)
        check_files(tree.sizes(PICTURES), files, tree.path / PICTURES)
        person_of, official = celeba_lists.people_and_splits(Path(self.params.celeba))
        unknown = next((name for name in originals if name not in person_of), None)
        if unknown:
            raise DatasetError(
                f"{MAPPING} names {unknown}, which is not in {celeba_lists.IDENTITIES}. Fetch both again."
            )
        people = [person_of[name] for name in originals]
        split_of = {person: official[name] for person, name in zip(people, originals, strict=True)}
        if self.params.split == "enlarged":
            sizes = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
            split_of = people_splits.enlarge(split_of, Counter(people), sizes, seed, self.name)
        parts = tree.sizes(MASKS) if self.params.masks else {}
        return [
            ListedPicture(
                f"{PICTURES}/{file}",
                {
                    "id": f"celeba_hq-{number:05d}",
                    "identity": person,
                    "split": split_of[person],
                    "original": original,
                    "caption": celeba_lists.caption(known[file]),
                    **known[file],
                },
                parts=mask_parts(number, parts) if self.params.masks else (),
            )
            for number, (file, original, person) in enumerate(zip(files, originals, people, strict=True))
        ]

    def picture_reader(self, size: int) -> partial:
        return partial(read_aligned, (1024,), size)


def mapping(text: str, name: str) -> list[str]:
    """CelebA's file of each picture, in order, from lines ``idx orig_idx orig_file`` below a header.

    Further columns are ignored. Raises DatasetError for a line that contradicts itself or the lines before it.
    """
    (line, head), *body = lists.rows(text, name)
    if head[:3] != ["idx", "orig_idx", "orig_file"]:
        raise DatasetError(f"{name}, line {line} must be 'idx orig_idx orig_file'. Fetch the list again.")
    originals: dict[str, int] = {}
    for number, (line, words) in enumerate(body):
        if len(words) < 3:
            raise DatasetError(f"{name}, line {line} has {len(words)} words and needs three. Fetch the list again.")
        own, original = (lists.whole_number(word, name, line) for word in words[:2])
        if own != number or words[2] != f"{original + 1:06d}.jpg":
            raise DatasetError(
                f"{name}, line {line}: picture {own}, made of CelebA's number {original} (from 0), cannot be "
                f"'{words[2][:40]}' and the line of picture {number}. Fetch the list again."
            )
        if words[2] in originals:
            raise DatasetError(f"{name}, line {line}: {words[2]} is listed twice. Fetch the list again.")
        originals[words[2]] = number
    return list(originals)


def mask_parts(number: int, files: dict[str, int]) -> tuple[tuple[int, str], ...]:
    """(class, file) of the parts of a picture's mask, in the order of the classes. ``files``: of all masks.

    Raises DatasetError when the picture has no file for the skin.
    """
    names = [f"{number // A_FOLDER}/{number:05d}_{part}.png" for part in PARTS]
    if names[0] not in files:
        raise DatasetError(f"{MASKS} has no {names[0]}. Unpack the set again, or set datasets.celeba_hq.masks: false.")
    return tuple((label, f"{MASKS}/{name}") for label, name in enumerate(names, start=1) if name in files)
