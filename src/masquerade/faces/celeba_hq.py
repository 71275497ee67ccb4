"""CelebA-HQ: 30,000 aligned faces of 1024 x 1024 pixels, as CelebAMask-HQ publishes them."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.errors import DatasetError
from masquerade.faces import _celeba, _lists, _people
from masquerade.faces._published import Listed, Published, look_at_aligned
from masquerade.faces._trees import FolderTree, Tree, ZipTree, found, same_files
from masquerade.settings import Settings

TOP, PICTURES, MASKS = "CelebAMask-HQ", "CelebA-HQ-img", "CelebAMask-HQ-mask-anno"
MAPPING, ATTRIBUTES = "CelebA-HQ-to-CelebA-mapping.txt", "CelebAMask-HQ-attribute-anno.txt"
A_FOLDER = 2000  # pictures whose masks are in one folder
# Classes 1 to 18 of the masks, in the order in which the published parser's code lays them over one another.
PARTS = (
    "skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "l_ear", "r_ear", "ear_r", "nose", "mouth", "u_lip", "l_lip",
    "neck", "neck_l", "cloth", "hair", "hat",
)  # fmt: skip


class CelebAHQ(Published):
    """Karras et al. 2018 (arXiv:1710.10196), in the layout of CelebAMask-HQ (Lee et al. 2020): a folder or its zip.

    Its people and parts are those of CelebA's pictures that they were made of. docs/datasets.md.
    """

    title = "CelebA-HQ"

    class Params(Settings):
        path: str
        """The folder that holds CelebAMask-HQ.zip, or what is in it."""
        celeba: str
        """The folder that holds CelebA's identity_CelebA.txt and list_eval_partition.txt."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (30,000: Karras et al. 2018)."""
        split: Literal["official", "people"]
        """official: CelebA's parts (falco section 4.1); people: people are dealt to splits of the sizes below."""
        validation_pictures: Annotated[int, Field(ge=0)]
        """Pictures of the validation split, where people are dealt; no paper has one."""
        test_pictures: Annotated[int, Field(ge=1)]
        """Pictures of the test split, where people are dealt (3,000: identitydp V.A, cao21 5.1; 5,000: lreorg 4.1)."""
        masks: bool
        """Read the parsing masks of CelebAMask-HQ: the parser is judged, or trained, on them."""

    def tree(self) -> Tree:
        root = Path(self.params.path)
        place = found(root, [PICTURES, f"{TOP}/{PICTURES}", f"{TOP}.zip"])
        if place.suffix == ".zip":
            return ZipTree(place, TOP)
        for name in (MAPPING, ATTRIBUTES, *([MASKS] if self.params.masks else [])):
            found(place.parent, [name])
        return FolderTree(place.parent)

    def lists(self) -> list[Path]:
        root = Path(self.params.celeba)
        tree = self.tree()
        own = [tree.path / name for name in (MAPPING, ATTRIBUTES)] if isinstance(tree, FolderTree) else []
        return [*own, *(_celeba.list_of(root, name) for name in (_celeba.IDENTITIES, _celeba.PARTITION))]

    def watched(self) -> list[str]:
        return [PICTURES, MASKS] if self.params.masks else [PICTURES]

    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        originals = mapping(tree.text(MAPPING), MAPPING)
        self.check_count(len(originals))
        known = _celeba.attributes(tree.text(ATTRIBUTES), ATTRIBUTES)
        files = [f"{number}.jpg" for number in range(len(originals))]
        _lists.same_names(known, ATTRIBUTES, dict.fromkeys(files), MAPPING)
        same_files(tree.sizes(PICTURES), files, tree.path / PICTURES)
        who, official = _celeba.people(Path(self.params.celeba))
        strange = next((name for name in originals if name not in who), None)
        if strange:
            raise DatasetError(f"{MAPPING} names {strange}, which {_celeba.IDENTITIES} has not. Fetch both again.")
        people = [who[name] for name in originals]
        if self.params.split == "people":
            wanted = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
            dealt = _people.dealt(Counter(people), wanted, seed, self.name)
            splits = [dealt[person] for person in people]
        else:
            splits = [official[name] for name in originals]
        parts = tree.sizes(MASKS) if self.params.masks else {}
        return [
            Listed(
                f"{PICTURES}/{file}",
                {
                    "id": f"celeba_hq-{number:05d}",
                    "identity": person,
                    "split": split,
                    "original": original,
                    **known[file],
                },
                parts=mask_parts(number, parts) if self.params.masks else (),
            )
            for number, (file, original, person, split) in enumerate(zip(files, originals, people, splits, strict=True))
        ]

    def looking(self, size: int) -> partial:
        return partial(look_at_aligned, (1024,), size)


def mapping(text: str, name: str) -> list[str]:
    """CelebA's file of each picture, in order, of lines ``idx orig_idx orig_file`` below a header.

    Further columns are not read. Raises DatasetError for a line that contradicts itself or the line before.
    """
    (line, head), *body = _lists.rows(text, name)
    if head[:3] != ["idx", "orig_idx", "orig_file"]:
        raise DatasetError(f"{name}, line {line}: 'idx orig_idx orig_file' should stand here. Fetch the list again.")
    originals: dict[str, int] = {}
    for number, (line, words) in enumerate(body):
        if len(words) < 3:
            raise DatasetError(f"{name}, line {line}: {len(words)} words where three belong. Fetch the list again.")
        own, original = (_lists.whole(word, name, line) for word in words[:2])
        if own != number or words[2] != f"{original + 1:06d}.jpg":
            raise DatasetError(
                f"{name}, line {line}: picture {own}, made of CelebA's number {original} (from 0), cannot be "
                f"'{words[2][:40]}' in the place of picture {number}. Fetch the list again."
            )
        if words[2] in originals:
            raise DatasetError(f"{name}, line {line}: {words[2]} is listed twice. Fetch the list again.")
        originals[words[2]] = number
    return list(originals)


def mask_parts(number: int, there: dict[str, int]) -> tuple[tuple[int, str], ...]:
    """(class, file) of the parts of a picture's mask, in the order of the classes.

    Raises DatasetError where there is not even skin.
    """
    names = [f"{number // A_FOLDER}/{number:05d}_{part}.png" for part in PARTS]
    if names[0] not in there:
        raise DatasetError(f"{MASKS} has no {names[0]}. Unpack the set again, or set datasets.celeba_hq.masks: false.")
    return tuple((label, f"{MASKS}/{name}") for label, name in enumerate(names, start=1) if name in there)
