"""CelebA: 202,599 photographs of 10,177 celebrities, with 40 attributes."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.errors import DatasetError
from masquerade.faces import _celeba, _lists
from masquerade.faces._published import Detection, Listed, Published, look_at_photograph
from masquerade.faces._trees import FolderTree, Tree, ZipTree, found, same_files
from masquerade.settings import Settings

ATTRIBUTES = "list_attr_celeba.txt"
LANDMARKS = {"img_align_celeba": "list_landmarks_align_celeba.txt", "img_celeba": "list_landmarks_celeba.txt"}
FIVE = [f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]


class CelebA(Published):
    """Liu et al. 2015 (ICCV): photographs in the wild, or upright, as published; each is aligned here as FFHQ is.

    The published five landmarks say whose face it is where several are found. docs/datasets.md.
    """

    title = "CelebA"

    class Params(Settings):
        path: str
        """The folder of the dataset, with Anno/, Eval/ and Img/ or with their files in it."""
        version: Literal["img_align_celeba", "img_celeba"]
        """img_align_celeba: 178 x 218 pixels, a folder or its zip; img_celeba: in the wild, an unpacked folder."""
        pictures: Annotated[int, Field(ge=1)]
        """Pictures of the set; any other number is an error (202,599: its publishers)."""
        splits: Annotated[list[Literal["train", "validation", "test"]], Field(min_length=1)]
        """The official parts that are read; all must be there. No paper trains on CelebA what is rebuilt here."""
        detection: Detection
        """How faces are found."""

    def tree(self) -> Tree:
        root, name = Path(self.params.path), self.params.version
        archives = [f"{name}.zip", f"Img/{name}.zip"] if name == "img_align_celeba" else []
        place = found(root, [name, f"Img/{name}", *archives])
        return ZipTree(place) if place.suffix == ".zip" else FolderTree(place.parent)

    def lists(self) -> list[Path]:
        names = (ATTRIBUTES, LANDMARKS[self.params.version], _celeba.IDENTITIES, _celeba.PARTITION)
        return [_celeba.list_of(Path(self.params.path), name) for name in names]

    def watched(self) -> list[str]:
        return [self.params.version]

    def listed(self, tree: Tree, seed: int) -> list[Listed]:
        attributes, landmarks, *_ = self.lists()
        known = _celeba.attributes(_celeba.text_of(attributes), attributes.name)
        near = middles(_celeba.text_of(landmarks), landmarks.name)
        who, split = _celeba.people(Path(self.params.path))
        self.check_count(len(known))
        _lists.same_names(known, attributes.name, near, landmarks.name)
        _lists.same_names(known, attributes.name, who, _celeba.IDENTITIES)
        same_files(tree.sizes(self.params.version), known, tree.path / self.params.version)
        return [
            Listed(
                f"{self.params.version}/{file}",
                {
                    "id": f"celeba-{Path(file).stem}",
                    "identity": who[file],
                    "split": split[file],
                    **known[file],
                },
                near=near[file],
            )
            for file in sorted(known)
            if split[file] in self.params.splits
        ]

    def looking(self, size: int) -> partial:
        return partial(look_at_photograph, self.params.detection, size)


def middles(text: str, name: str) -> dict[str, tuple[float, float]]:
    """file -> the mean of its five landmarks, (x, y) in pixels. Raises DatasetError."""
    columns, listed = _lists.table(text, name)
    if columns != FIVE:
        raise DatasetError(f"{name} should have the columns {' '.join(FIVE)}. Fetch the list again.")
    try:
        points = {file: [int(word) for word in words] for file, words in listed.items()}
    except ValueError as error:
        raise DatasetError(f"{name}: a coordinate is no whole number ({error}). Fetch the list again.") from error
    return {file: (sum(five[::2]) / 5, sum(five[1::2]) / 5) for file, five in points.items()}
