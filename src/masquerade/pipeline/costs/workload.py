"""The cells of a scale's matrix, and the number of faces in each dataset."""

from functools import cached_property
from pathlib import Path

from masquerade.params import matrix, paths
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.pipeline.attacker_inputs import ONE, AttackerInputs
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
            counts = pictures.count(self.parameters, name, self._index(name))
            if matrix.unavailable(self.parameters, name):
                self.notes[name] = "not placed: counted as if it were here"
            if counts is None:
                self.notes[name] = "nobody knows how many faces before the archive is built: none are counted"
            faces[name] = counts or {}
        return faces

    def _index(self, dataset: str) -> Path:
        """The index of the archive of a dataset, if it is built."""
        return self.root / paths.index(paths.Paths(self.parameters.scale).faces.format(dataset=dataset))

    def test(self, dataset: str) -> int:
        """Number of pictures in a test split."""
        return self.faces[dataset].get("test", 0)

    def learned_by(self, group: str) -> int:
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

    @cached_property
    def attackers(self) -> AttackerInputs:
        """The cells that attackers who know the method attack, and who attacks which."""
        return AttackerInputs(self.parameters, self.cells, paths.Paths(self.parameters.scale))

    def attackers_pictures(self, cell: Cell) -> int:
        """Number of pictures of their own people that the attackers of a cell anonymize, about.

        If the number of people is not known before the archive is built, it is the most that it can be.
        """
        settings, group = self.parameters.informed.people_of(cell.method, cell.variant), self.learned_by("attackers")
        dataset = self.parameters.matrix.train_on
        known = pictures.people(self.parameters, dataset, self._index(dataset))
        if known is None:
            return min(group, settings.people * settings.pictures or group)
        people = known * self.parameters.people.attackers
        each = group / people if people else 0
        return round(min(settings.people or people, people) * min(settings.pictures or each, each))

    def picture_sets(self) -> list[tuple[str, list[tuple[Cell, int]]]]:
        """(rule, (cell, number of pictures) of each archive) of each rule that anonymizes."""
        known = self.learned_by("methods")
        train = min(self.parameters.attributes.train_pictures or known, known)
        own = [cell for cell in self.matching("attributes") if cell.dataset == self.parameters.matrix.train_on]
        attacked = [
            (cell, self.attackers_pictures(cell) + (self.test(cell.dataset) if keys == ONE else 0))
            for cell in self.attackers.cells
            for keys in self.attackers.keys(cell)
        ]
        return [
            ("anonymize", [(cell, self.test(cell.dataset)) for cell in self.cells]),
            ("anonymize_train", [(cell, train) for cell in own]),
            ("anonymize_attackers", attacked),
        ]
