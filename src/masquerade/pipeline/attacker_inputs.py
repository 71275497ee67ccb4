"""Finds which cells are attacked by whom, and the files and parameters that these attacks need."""

from collections.abc import Iterable, Sequence
from typing import Any

from masquerade.attackers import Attacker
from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.params import matrix
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths, with_index

PER_IMAGE, SHARED = "per_image", "shared"
"""Pictures of which each has a key of its own, and pictures under one key (`Attacker.keys`)."""


class AttackerInputs:
    """The attackers who know the method at one scale. ``cells``: the attacked ones, of those that the scale builds.

    Raises ParameterError if a cell is of a dataset without people of the attackers' group.
    """

    def __init__(self, parameters: Parameters, built: Sequence[Cell], paths: Paths):
        self.parameters, self.paths = parameters, paths
        self.cells = matrix.matching(built, parameters.informed.cells)
        train_on = parameters.matrix.train_on
        if other := sorted({cell.dataset for cell in self.cells} - {train_on}):
            raise ParameterError(
                f"informed.cells names {other[0]}, which has no people of the attackers' group: only the train split "
                f"of {train_on} (matrix.train_on) is dealt to groups. Move its patterns to {train_on}."
            )

    def of(self, cell: Any) -> list[str]:
        """The attackers whose attack is one on the method of a cell."""
        able = discovery.load("methods", cell.method).capabilities
        return [name for name in self.parameters.attackers if _load(name).applies(able)]

    def needs(self, attackers: Iterable[str]) -> list[str]:
        """The backbones that attackers use, each once."""
        return list(dict.fromkeys(need for name in attackers for need in self._needs(name)))

    def _needs(self, name: str) -> tuple[str, ...]:
        return _load(name).needs(self.parameters.attackers[name])

    def faces(self, wildcards: Any) -> list[str]:
        """Input function: the pictures from which an attacker learns."""
        return self._pictures(_load(wildcards.attacker).keys)

    def own_faces(self) -> list[str]:
        """The attackers' pictures with keys of their own."""
        return self._pictures(PER_IMAGE)

    def insider_faces(self, wildcards: Any) -> list[str]:
        """Input function: the pictures under one key of the wildcards' cell; [] if its method takes no key."""
        return self._pictures(SHARED) if SHARED in self.keys(wildcards) else []

    def keys(self, cell: Any) -> list[str]:
        """The keys of the archives of a cell, one archive each: PER_IMAGE, and SHARED if an attacker has the key."""
        return sorted({PER_IMAGE} | {_load(name).keys for name in self.of(cell)})

    def _pictures(self, keys: str) -> list[str]:
        return with_index(self.paths.attackers_faces.replace("{key_kind}", keys))

    def trained(self, cell: Any, pattern: str) -> list[str]:
        """One file for each training of the attackers of a cell."""
        trials, files = self.parameters.informed.trials.get(f"{cell.method}/{cell.variant}", 1), []
        where = {key: getattr(cell, key) for key in ("dataset", "method", "variant", "seed")}
        for name in self.of(cell):
            cls = _load(name)
            numbers = range((trials if cls.repeated else 1) if cls.learns else 0)
            files += [pattern.format(attacker=name, trial=trial, **where) for trial in numbers]
        return files

    def archives(self) -> list[str]:
        """The archives of all attackers' pictures."""
        return [
            self.paths.attackers_faces.format(key_kind=keys, **vars(cell))
            for cell in self.cells
            for keys in self.keys(cell)
        ]

    def trainings(self) -> list[str]:
        """The checkpoints of all attackers and their quality."""
        patterns = self.paths.attacker, self.paths.attacker_quality
        return [file for cell in self.cells for pattern in patterns for file in self.trained(cell, pattern)]


def _load(attacker: str) -> type[Attacker]:
    return discovery.load("attackers", attacker)
