"""Computes what the rules of the graph declare: cells, input files, and slices of the parameters.

``workflow/rules/common.smk`` makes one `Graph`, which every rule uses. This module imports neither Snakemake nor torch.
A method that takes ``wildcards`` is an input function: any object with the wildcards as attributes will do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import assets
from masquerade.core import discovery, rehearsal, seeding
from masquerade.core.errors import ParameterError
from masquerade.params import loading, matrix, sharing
from masquerade.params.matrix import Cell
from masquerade.params.paths import CELL, Paths
from masquerade.params.slices import Slice
from masquerade.pipeline import adopted_networks
from masquerade.pipeline.attacker_inputs import AttackerInputs
from masquerade.pipeline.backbone_inputs import BackboneInputs
from masquerade.pipeline.judge_inputs import JudgeInputs
from masquerade.pipeline.method_inputs import MethodInputs
from masquerade.pipeline.paper_inputs import PaperInputs
from masquerade.pipeline.planned_files import PlannedFiles

LATENT_BACKBONES = ("generator", "inversion", "semantics")
"""The backbones on which the codes of faces depend."""


def one_of(names: Iterable[object]) -> str:
    """A regular expression that matches these names alone."""
    return "|".join(sorted({str(name) for name in names})) or "none"


class Graph:
    """The graph of one scale of the repository at ``root``: its cells, and what it says of each kind of module.

    ``announce`` is called with each file that planning writes. Raises MasqueradeError if the parameters are wrong.
    """

    def __init__(
        self,
        root: Path,
        scale: str | None = None,
        announce: Callable[[str], None] = lambda path: None,
        config: Mapping[str, Any] | None = None,
    ):
        self.parameters = loading.load(root, scale, config)
        self.scale = self.parameters.scale
        self.paths = Paths(self.scale)
        self.all_cells = matrix.cells(self.parameters)
        self.cells = [cell for cell in self.all_cells if cell.runnable]
        # Imported cells are pictures of test faces: their program can make no others.
        self.built = [cell for cell in self.cells if cell.method not in self.parameters.imported]
        self.attributed = matrix.matching(self.built, self.parameters.attributes.cells)
        self.attempted = matrix.matching(self.built, self.parameters.recovery.cells)
        self.key_attacked = matrix.matching(self.built, self.parameters.attacks.cells)
        self.train_on = self.parameters.matrix.train_on
        self.datasets = sorted({cell.dataset for cell in self.cells} | {self.train_on})
        self.private = " ".join(name for name in self.datasets if name in self.parameters.private)
        """The datasets of this scale whose images no figure and no report shows."""
        self.attribute_datasets = sorted({cell.dataset for cell in self.attributed} | {self.train_on})
        self.planned = PlannedFiles(root.resolve(), announce)
        self.backbones = BackboneInputs(self.parameters, self.paths, self.planned)
        self.methods = MethodInputs(self.parameters, self.paths, self.planned, self.backbones)
        self.judges = JudgeInputs(self.parameters, self.planned, self.backbones)
        self.papers = PaperInputs(self.parameters, self.paths, self.all_cells, self.attempted)
        self.attackers = AttackerInputs(self.parameters, self.built, self.paths)
        self._check_train_set()
        adopted_networks.check(self.parameters, root.resolve())
        rehearsal.declare(self.parameters.rehearsal)
        sharing.declare(self.parameters.private)
        seeding.declare_determinism(self.parameters.compute.deterministic)
        self._slice, self.sources = cache(self._slice), cache(self.sources)

    def _check_train_set(self) -> None:
        dataset = discovery.load("faces", self.train_on)(self.parameters.datasets[self.train_on])
        available, reason = dataset.available()
        if not available:
            advice = f" {assets.how_to_get(self.train_on)}" if self.train_on in assets.registry() else ""
            raise ParameterError(
                f"matrix.train_on is {self.train_on}, without which nothing is built: {reason}.{advice}"
            )

    def params_slice(self, *keys: str) -> Callable[[Any], str]:
        """A function that gives a job its `Slice` of the parameters as text.

        ``keys`` are dotted, and may hold wildcards in braces. A key that ends with ``?`` may be missing.
        """

        def text(wildcards: Any) -> str:
            words = dict(wildcards.items())
            return self._slice(tuple(key.format(**words) for key in keys))

        return text

    def _slice(self, keys: tuple[str, ...]) -> str:
        return Slice.of(self.parameters, keys).text()

    def sources(self, dataset: str) -> list[str]:
        """The files from which the faces of a dataset are made."""
        sources = discovery.load("faces", dataset)(self.parameters.datasets[dataset]).sources()
        planned = self.planned.written
        return [planned(str(path)) if path.parts[0] == ".masquerade" else str(path) for path in sources]

    def has_train_split(self, dataset: str) -> bool:
        """Whether a dataset has a train split here. The attribute protocol splits the test set of the others."""
        return dataset == self.train_on

    def of(self, cells: Iterable[Cell], pattern: str) -> list[str]:
        """The files of cells."""
        return [pattern.format(**vars(cell)) for cell in cells]

    def of_datasets(self, datasets: Iterable[str], pattern: str) -> list[str]:
        return [pattern.format(dataset=name) for name in datasets]

    def only(self, cells: Sequence[Cell], pattern: str) -> Callable[[Any], str | list[str]]:
        """Input function: the file of the wildcards' cell, [] if it is not one of ``cells``."""
        paths = {cell.path for cell in cells}
        return lambda wildcards: pattern if CELL.format(**dict(wildcards.items())) in paths else []

    def results(self, *paths: str) -> list[str]:
        """These paths, or none in a rehearsal, which makes no results."""
        return [] if self.parameters.rehearsal else list(paths)
