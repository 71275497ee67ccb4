"""Computes what the rules of the graph declare: cells, input files, and slices of the parameters.

``workflow/rules/common.smk`` makes one `Graph`, which every rule uses. This module imports neither Snakemake nor torch.
A method that takes ``wildcards`` is an input function: any object with the wildcards as attributes will do.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import assets
from masquerade.core import discovery, rehearsal, seeding
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ParameterError
from masquerade.lineage.address import LEADERBOARD
from masquerade.papers import claims, reference
from masquerade.papers.declarations import Need
from masquerade.papers.figure_declarations import Reference
from masquerade.params import loading, matrix, sharing
from masquerade.params.matrix import Cell, Setting
from masquerade.params.parameters import Parameters
from masquerade.params.paths import CELL, Paths, with_index
from masquerade.params.slices import Slice
from masquerade.pipeline import pretrained_networks
from masquerade.pipeline.rule_inputs import AttackerInputs, BackboneInputs, JudgeInputs, MethodInputs, PlannedFiles

LATENT_BACKBONES = ("generator", "inversion", "semantics")
"""The backbones on which the codes of faces depend."""


def match_any(names: Iterable[object]) -> str:
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
        self.all_cells = matrix.plan_cells(self.parameters)
        self.cells = [cell for cell in self.all_cells if cell.runnable]
        self.attributed = matrix.select_by_protocol(self.parameters, self.cells, "attributes")
        self.attempted = matrix.select_by_protocol(self.parameters, self.cells, "recovery")
        self.key_attacked = matrix.select_matching(self.cells, self.parameters.attacks.cells)
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
        self.attackers = AttackerInputs(self.parameters, self.cells, self.paths)
        self._check_train_set()
        pretrained_networks.check_pretrained(self.parameters, root.resolve())
        rehearsal.declare_rehearsal(self.parameters.rehearsal)
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


class PaperInputs:
    """The tables, figures and claims of the papers of one scale. ``attempted``: the cells whose faces are recovered.

    Raises ReferenceFileError if a file of reference/ is wrong.
    """

    def __init__(self, parameters: Parameters, paths: Paths, cells: Sequence[Cell], attempted: Sequence[Cell]):
        self.parameters, self.paths = parameters, paths
        self.datasets = parameters.stand_ins.datasets
        declared = [item for paper in parameters.papers for item in reference.find(paper)]
        self.items: dict[str, Any] = {
            item.key: reference.add_imported_rows(item, matrix.list_imported(parameters), parameters.stand_ins)
            for item in declared
        }
        self.claims = claims.of_papers(claims.load(), parameters.papers)
        self._planned = matrix.group_by_setting(cells)
        self._runnable = matrix.group_by_setting(cell for cell in cells if cell.runnable)
        self._attempted = matrix.group_by_setting(attempted)
        figures = [item for item in self.items.values() if item.kind == "clusters"]
        self.clustered = {setting for item in figures for setting in self.settings(item)}

    def names(self, *kinds: str) -> str:
        """A regular expression for the items of these kinds.

        It includes the paper: Figure 4 is a figure of curves in one paper and a grid of images in another.
        """
        matching = [item for item in self.items.values() if item.kind in kinds]
        return "|".join(sorted(f"(?<=/{item.paper}/){item.name}" for item in matching)) or "none"

    def item(self, wildcards: Any) -> Any:
        """The table or figure of the wildcards ``paper`` and ``item``."""
        return self.items[f"{wildcards.paper}/{wildcards.item}"]

    def outputs(self, item: Any) -> list[str]:
        """The files of a table or figure. The report reads the first one."""
        if item.kind == "leaderboard":
            return [f"{self.paths.leaderboard}.csv", f"{self.paths.leaderboard}.md"]
        pattern = self.paths.table if item.kind == "table" else self.paths.figure
        return [f"{pattern}.{ending}".format(paper=item.paper, item=item.name) for ending in item.endings]

    @property
    def leaderboard(self) -> Any:
        """The leaderboard. Raises KeyError at a scale without the tables of `attackers`."""
        return self.items[LEADERBOARD]

    def settings(self, item: Reference, needs: Callable[..., list[Need]] = reference.needs) -> list[Setting]:
        """The (dataset, method, variant) that an item shows, with the datasets that stand in at this scale."""
        stand_ins = {dataset.role: reference.stand_in(dataset, self.datasets) for dataset in reference.datasets(item)}
        planned = {
            (method, variant): None for dataset, method, variant in self._planned if dataset in stand_ins.values()
        }
        return [(stand_ins[role], method, variant) for role, method, variant in needs(item, planned)]

    def all_settings(self) -> list[Setting]:
        """The (dataset, method, variant) of every table and figure."""
        return [setting for item in self.items.values() for setting in self.settings(item)]

    def claimed_settings(self) -> list[Setting]:
        """The (dataset, method, variant) of every number that the claims compare."""
        needs = claims.needs(self.claims)
        return [(self.datasets.get(role, role), method, variant) for role, method, variant in needs]

    def files(self, pattern: str, settings: Iterable[Setting], attempts: bool = False) -> list[str]:
        """The files of the cells that have one of ``settings``: runnable cells, or cells with ``attempts``."""
        cells = self._attempted if attempts else self._runnable
        return [pattern.format(**vars(cell)) for cell in matrix.select_settings(cells, settings)]

    def shown(self, pattern: str, attempts: bool = False) -> Callable[[Any], list[str]]:
        """Input function: the files of the cells that the wildcards' table or figure shows."""
        needs = reference.list_attempts if attempts else reference.needs
        return lambda wildcards: self.files(pattern, self.settings(self.item(wildcards), needs), attempts)

    def scored(self, pattern: str) -> Callable[[Any], str]:
        """Input function: the file of the first cell with what the wildcards' program made, on the leaderboard's
        dataset if it made images of that one.
        """

        def find(wildcards: Any) -> str:
            wanted = self.datasets.get(self.leaderboard.dataset.role, self.leaderboard.dataset.role)
            cells = [cell for (_, method, name), own in self._runnable.items()
                     if (method, name) == (IMPORTED, wildcards.variant) for cell in own]  # fmt: skip
            return pattern.format(**vars(min(cells, key=lambda cell: cell.dataset != wanted)))

        return find

    def source(self, pattern: str) -> Callable[[Any], str]:
        """Input function: the file of the dataset that the wildcards' figure shows first."""
        return lambda wildcards: pattern.format(dataset=self.settings(self.item(wildcards))[0][0])

    def if_chosen_by_distance(self, files: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Input function: ``files``, if the wildcards' grid selects its faces by distance; else []."""
        return lambda wildcards: files(wildcards) if self.item(wildcards).choose == "closest_to_mean" else []

    def reasons(self, settings: Iterable[Setting]) -> str:
        """Why some of ``settings`` have no runnable cell: JSON of [dataset, method, variant, reason]."""
        skipped = matrix.explain_skipped(self.parameters, settings, self._planned)
        return json.dumps([[*setting, reason] for setting, reason in sorted(skipped.items())])

    def not_shown(self, wildcards: Any) -> str:
        """The `reasons` for the wildcards' table or figure."""
        return self.reasons(self.settings(self.item(wildcards)))

    def imported(self, items: Iterable[Reference]) -> str:
        """What other programs made and ``items`` show, as one JSON string."""
        entries = [entry for item in items for entry in reference.method_entries(item)]
        shown = {entry.variant for entry in entries if entry.method == IMPORTED}
        block = f"methods.{IMPORTED}.variants"
        return json.dumps(self.parameters.slice(tuple(f"{block}.{name}" for name in sorted(shown))), sort_keys=True)


class Targets:
    """The target files of a graph: one method for each kind. Every kept file is the target of one kind."""

    def __init__(self, graph: Graph):
        self._graph, self._paths = graph, graph.paths

    def of(self, kind: str, *names: str) -> Callable[[Any], list[str]]:
        """Input function: the files of a kind. They are listed when a rule needs them, not in every job."""
        return lambda wildcards: getattr(self, kind)(*names)

    def data(self) -> list[str]:
        """The faces of every dataset."""
        return _with_indexes(self._graph.of_datasets(self._graph.datasets, self._paths.faces))

    def backbones(self) -> list[str]:
        """Every backbone, its quality, and their table."""
        patterns = self._paths.backbone, self._paths.backbone_quality
        files = [pattern.format(backbone=name) for name in self._graph.parameters.backbones for pattern in patterns]
        return files + self._graph.results(self._paths.backbones_table)

    def latents(self) -> list[str]:
        """The set of fakes, the distractors, and the codes of each dataset that a method anonymizes in latent space."""
        able = {cell.method: self._graph.methods.capabilities(cell.method) for cell in self._graph.cells}
        fakes = [self._paths.fakes] if any(capabilities.fakes for capabilities in able.values()) else []
        fakes += [self._paths.distractors] if self._graph.parameters.distractors.count else []
        datasets = {cell.dataset for cell in self._graph.cells if self._graph.parameters.uses_latent_codes(cell.method)}
        return fakes + self._graph.of_datasets(sorted(datasets), self._paths.latents)

    def train(self) -> list[str]:
        """The checkpoints of the methods and their ablations."""
        trained = [cell for cell in self._graph.cells if self._graph.parameters.trains(cell.method)]
        return sorted({str(self._graph.methods.checkpoint(cell)).format(**vars(cell)) for cell in trained})

    def anonymize(self) -> list[str]:
        """The anonymized test faces of every cell, and the train faces that the attribute protocol needs."""
        train = [cell for cell in self._graph.attributed if self._graph.has_train_split(cell.dataset)]
        test = self._graph.of(self._graph.cells, self._paths.anonymized)
        return _with_indexes(test + self._graph.of(train, self._paths.anonymized_train))

    def measure(self) -> list[str]:
        """The measurements of every dataset and every cell."""
        sources = self._graph.of_datasets(self._graph.datasets, self._paths.source_measurements)
        return sources + self._graph.of(self._graph.cells, self._paths.measurements)

    def attributes(self) -> list[str]:
        """What the attribute protocol gives."""
        labels = [self._paths.pseudo_labels, self._paths.pseudo_label_quality]
        return labels + self._graph.of(self._graph.attributed, self._paths.attributes)

    def recovery(self) -> list[str]:
        """Attempts to recover faces, their measurements, and attacks on keys."""
        attempted, attacked = self._graph.attempted, self._graph.key_attacked
        return (
            _with_indexes(self._graph.of(attempted, self._paths.recoveries))
            + self._graph.of(attempted, self._paths.recovery_measurements)
            + self._graph.of(attacked, self._paths.key_attacks)
        )

    def attackers(self) -> list[str]:
        """The images, trainings and results of attackers who know the method, and the downstream utility."""
        inputs, paths = self._graph.attackers, self._paths
        results = [
            file
            for pattern in (paths.attack_results, paths.downstream_utility)
            for file in self._graph.of(inputs.cells, pattern)
        ]
        return _with_indexes(inputs.archives()) + inputs.trainings() + results

    def features(self) -> list[str]:
        """The features that figures of clusters show."""
        return self._graph.papers.files(self._paths.features, self._graph.papers.clustered)

    def metrics(self) -> list[str]:
        """The metrics of every cell, and the file with all their means."""
        return self._graph.of(self._graph.cells, self._paths.metrics) + self._graph.results(self._paths.scores)

    def tables(self) -> list[str]:
        """Every table and figure, and the page of claims."""
        papers = self._graph.papers
        files = [path for item in papers.items.values() for path in papers.outputs(item)]
        claims = [f"{self._paths.claims_table}.{ending}" for ending in ("csv", "md", "tex")]
        return self._graph.results(*files, *claims) + self.scores()

    def scores(self) -> list[str]:
        """The pages of what other programs made."""
        variants = {cell.variant for cell in matrix.select_imported(self._graph.cells)}
        pages = [
            f"{self._paths.score}.{ending}".format(variant=name)
            for name in sorted(variants)
            for ending in ("md", "png")
        ]
        return self._graph.results(*pages) if LEADERBOARD in self._graph.papers.items else []

    def paper(self, name: str) -> list[str]:
        """The tables and figures of one paper. Those of `attackers` come with the files of all attacks."""
        papers = self._graph.papers
        files = [path for item in papers.items.values() if item.paper == name for path in papers.outputs(item)]
        return self._graph.results(*files) + (self.attackers() if name == "attackers" else [])

    def report(self) -> list[str]:
        """The report page."""
        return self._graph.results(self._paths.report)


def _with_indexes(archives: list[str]) -> list[str]:
    return [path for archive in archives for path in with_index(archive)]
