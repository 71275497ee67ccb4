"""The cells of a scale's matrix, and the number of faces in each dataset."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from masquerade.params import matrix, paths
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.pipeline.costs import pictures


class Workload:
    """The cells of ``parameters`` and the sizes of their datasets. ``root``: the repository with the built archives.

    A dataset whose files are not placed counts as if they were.
    """

    def __init__(self, parameters: Parameters, root: Path):
        self.parameters, self.root = parameters, root
        cells = [cell for cell in matrix.cells(parameters, as_if_placed=True) if cell.runnable]
        self.imported = [cell for cell in cells if cell.method in parameters.imported]
        self.cells = [cell for cell in cells if cell.method not in parameters.imported]
        self.notes: dict[str, str] = {}

    @cached_property
    def faces(self) -> dict[str, dict[str, int]]:
        """Dataset -> split -> number of faces; empty for a dataset of unknown size. Sets `notes`."""
        names = sorted({cell.dataset for cell in self.cells} | {self.parameters.matrix.train_on})
        faces = {}
        for name in names:
            archive = paths.Paths(self.parameters.scale).faces.format(dataset=name)
            counts = pictures.count(self.parameters, name, self.root / paths.index(archive))
            if matrix.unavailable(self.parameters, name):
                self.notes[name] = "not placed: counted as if it were here"
            if counts is None:
                self.notes[name] = "nobody knows how many faces before the archive is built: none are counted"
            faces[name] = counts or {}
        return faces

    def test(self, dataset: str) -> int:
        """Number of pictures in a test split."""
        return self.faces[dataset].get("test", 0)

    def learnt_by(self, group: str) -> int:
        """Number of pictures of a group of people, about: its share of the train split."""
        train = self.faces[self.parameters.matrix.train_on].get("train", 0)
        return round(train * getattr(self.parameters.people, group))

    @cached_property
    def png(self) -> dict[str, int]:
        """Dataset -> bytes of one picture."""
        return {name: pictures.png_bytes(self.parameters, name) for name in self.faces}

    def matching(self, block: str) -> list[Cell]:
        """The cells that a block of the parameters selects."""
        return matrix.matching(self.cells, getattr(self.parameters, block).cells)

    def picture_sets(self) -> list[tuple[str, list[Cell], Callable[[Cell], int]]]:
        """(rule, cells, number of pictures of a cell) of each rule that anonymizes."""
        most = self.parameters.attributes.train_pictures or self.learnt_by("methods")
        own = [cell for cell in self.matching("attributes") if cell.dataset == self.parameters.matrix.train_on]
        return [
            ("anonymize", self.cells, lambda cell: self.test(cell.dataset)),
            ("anonymize_train", own, lambda _: min(most, self.learnt_by("methods"))),
        ]
