"""CASIA-WebFace: half a million photographs of ten thousand actors."""

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.errors import DatasetError
from masquerade.faces import _people
from masquerade.faces._published import Detection, Listed, Published, look_at_photograph
from masquerade.faces._records import RecordTree
from masquerade.faces._trees import FolderTree, Tree, found
from masquerade.settings import Settings

TOP = "CASIA-WebFace"
FILE = re.compile(r"(\d{7})/(\d{3,4})\.jpg")


class CasiaWebFace(Published):
    """Yi et al. 2014 (arXiv:1411.7923): folders of people, or InsightFace's record; each is aligned here as FFHQ is.

    InsightFace's pictures are 112 x 112 pixels and closer than FFHQ's square, whose rim is then mirrored.
    docs/datasets.md.
    """

    title = "CASIA-WebFace"

    class Params(Settings):
        path: str
        """The folder that holds train.rec, train.idx and property, or CASIA-WebFace/ with a folder for each person."""
        layout: Literal["record", "folders"]
        """record: InsightFace's faces_webface_112x112; folders: as first published."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (490,623 in the record; 494,414: Yi et al. 2014)."""
        validation_pictures: Annotated[int, Field(ge=0)]
        """Pictures of the validation split, to which people are dealt at random. Ours: no paper says any."""
        test_pictures: Annotated[int, Field(ge=1)]
        """Pictures of the test split, to which people are dealt at random. Ours: cao21 shows some in a figure."""
        splits: Annotated[list[Literal["train", "validation", "test"]], Field(min_length=1)]
        """The splits that are read; all pictures must be there. No paper trains on it what is rebuilt here."""
        detection: Detection
        """How faces are found."""

    def tree(self) -> Tree:
        root = Path(self.params.path)
        return RecordTree(root) if self.params.layout == "record" else FolderTree(found(root, [TOP]).parent)

    def lists(self) -> list[Path]:
        return []

    def watched(self) -> list[str]:
        return [TOP]

    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        pictures = _of_records(tree) if isinstance(tree, RecordTree) else _of_folders(tree)
        self.check_count(len(pictures))
        wanted = {"test": self.params.test_pictures, "validation": self.params.validation_pictures}
        split = _people.dealt(Counter(person for _, person, _ in pictures), wanted, seed, self.name)
        return [
            Listed(file, {"id": f"casia-{person}-{name}", "identity": f"casia-{person}", "split": split[person]})
            for file, person, name in pictures
            if split[person] in self.params.splits
        ]

    def looking(self, size: int) -> partial:
        return partial(look_at_photograph, self.params.detection, size)


def _of_records(tree: RecordTree) -> list[tuple[str, str, str]]:
    """(file, person, name) of every picture of the record."""
    return [(str(number), f"{person:05d}", f"{number:06d}") for person, own in enumerate(tree.people) for number in own]


def _of_folders(tree: Tree) -> list[tuple[str, str, str]]:
    """(file, person, name) of every picture below the folders. Raises DatasetError for a file that is none."""
    found = []
    for file in sorted(tree.sizes(TOP)):
        named = FILE.fullmatch(file)
        if not named:
            raise DatasetError(
                f"{tree.path / TOP}/{file} is not named as its pictures are (0000045/001.jpg). Move it away."
            )
        found.append((f"{TOP}/{file}", named[1], named[2]))
    return found
