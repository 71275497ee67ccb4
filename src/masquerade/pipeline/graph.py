"""Computes what the rules of the graph declare: cells, input files, code fingerprints, slices of the parameters.

``workflow/rules/common.smk`` makes one `Graph`, which every rule uses. This module imports neither Snakemake nor torch.
A method that takes ``wildcards`` is an input function: any object with the wildcards as attributes will do.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import assets
from masquerade.core import discovery, fingerprints, rehearsal
from masquerade.core.errors import ParameterError
from masquerade.methods import Capabilities
from masquerade.params import loading, matrix
from masquerade.params.blocks import AttackSettings, AttributeSettings, RecoverySettings
from masquerade.params.matrix import Cell
from masquerade.params.paths import CELL, CODE, Paths, with_index
from masquerade.params.slices import Knobs, text_of
from masquerade.pipeline import adopted_networks
from masquerade.pipeline.attacker_inputs import AttackerInputs
from masquerade.pipeline.paper_inputs import PaperInputs

LATENT_BACKBONES = ("generator", "inversion", "semantics")
"""The backbones on which the codes of faces depend."""


def one_of(names: Iterable[object]) -> str:
    """A regular expression that matches these names alone."""
    return "|".join(sorted({str(name) for name in names})) or "none"


def fields(settings: type) -> list[str]:
    """The names of the parameters of a block."""
    return sorted(settings.model_fields)


class Graph:
    """The graph of one scale of the repository at ``root``.

    ``announce`` is called with each file that planning writes. Raises MasqueradeError if the parameters are wrong.
    """

    def __init__(self, root: Path, scale: str | None = None, announce: Callable[[str], None] = lambda path: None):
        self.root, self._announce = root.resolve(), announce
        self.parameters = loading.load(root, scale)
        self.scale = self.parameters.scale
        self.paths = Paths(self.scale)
        self.all_cells = matrix.cells(self.parameters)
        self.cells = [cell for cell in self.all_cells if cell.runnable]
        # Imported cells are pictures of test faces: their program can make no others.
        self.built = [cell for cell in self.cells if cell.method not in self.parameters.imported]
        self.attributed = matrix.matching(self.built, self.parameters.attributes.cells)
        self.attempted = matrix.matching(self.built, self.parameters.recovery.cells)
        self.attacked = matrix.matching(self.built, self.parameters.attacks.cells)
        self.train_on = self.parameters.matrix.train_on
        self.datasets = sorted({cell.dataset for cell in self.cells} | {self.train_on})
        self.attribute_datasets = sorted({cell.dataset for cell in self.attributed} | {self.train_on})
        self.papers = PaperInputs(self.parameters, self.all_cells, self.attempted)
        self.attackers = AttackerInputs(self.parameters, self.built, self.paths)
        self._check_train_set()
        adopted_networks.check(self.parameters, self.root)
        rehearsal.declare(self.parameters.rehearsal)
        # The methods with networks; a processor computes the others at once.
        self.neural = {
            method for method in self.parameters.methods if self.needs(method) or self.capabilities(method).trains
        }
        self._slice, self._fingerprints = cache(self._slice), cache(self._fingerprints)
        self.sources, self.asset = cache(self.sources), cache(self.asset)

    def _check_train_set(self) -> None:
        dataset = discovery.load("faces", self.train_on)(self.parameters.datasets[self.train_on])
        available, reason = dataset.available()
        if not available:
            advice = f" {assets.how_to_get(self.train_on)}" if self.train_on in assets.registry() else ""
            raise ParameterError(
                f"matrix.train_on is {self.train_on}, without which nothing is built: {reason}.{advice}"
            )

    # parameters

    def knobs(self, *keys: str, name: str) -> Knobs:
        """A function that gives a job its slice of the parameters, as one canonical JSON string.

        ``keys`` are dotted; a key that ends with ``?`` may be missing. ``name``: of the slice's file, on which the DVC
        stage of the job depends. Both may hold wildcards. Jobs that read the same keys share a name.
        """
        return Knobs(name, keys, self._slice)

    def _slice(self, keys: tuple[str, ...]) -> str:
        return text_of(self.parameters, keys)

    @property
    def variant_knobs(self) -> tuple[str, ...]:
        """The parameters of a method's checkpoint and of one of its variants."""
        return "methods.{method}.params", "methods.{method}.ablations.{variant}?", "methods.{method}.variants.{variant}"

    def knobs_of(self, block: str, settings: type) -> list[str]:
        """The dotted keys of a block of params.yaml, without those that only select cells."""
        return [f"{block}.{name}" for name in fields(settings)]

    @property
    def attribute_knobs(self) -> list[str]:
        return self.knobs_of("attributes", AttributeSettings)

    @property
    def recovery_knobs(self) -> list[str]:
        return self.knobs_of("recovery", RecoverySettings)

    @property
    def attack_knobs(self) -> list[str]:
        return self.knobs_of("attacks", AttackSettings)

    # code

    def code(self, step: str, *modules: Path) -> str:
        """The file with the fingerprints of the code of a step: its program and the discovered modules that it loads.

        ``step``: the name of the program in workflow/scripts, then ``.`` and what tells apart several uses of it.
        """
        return self._fingerprints(step, modules)

    def _fingerprints(self, step: str, modules: tuple[Path, ...]) -> str:
        roots = [self.root / "workflow/scripts" / f"{step.split('.')[0]}.py", *modules]
        fingerprints.write_fingerprints(self.root / CODE / f"{step}.json", roots, self.root)
        return self._written(f"{CODE}/{step}.json")

    def _written(self, path: str) -> str:
        self._announce(path)
        return path

    def modules(self, room: str, names: Iterable[str]) -> list[Path]:
        """The files of discovered modules."""
        return [discovery.module_path(room, name) for name in names]

    def method_code(self, step: str) -> Callable[[Any], str]:
        """Input function: the code of a step for the wildcard's method and the backbones that it needs."""

        def value(wildcards: Any) -> str:
            method, backbones = wildcards.method, self.needs(wildcards.method)
            modules = self.modules("methods", [method]) + self.modules("backbones", backbones)
            return self.code(f"{step}.{method}", *modules)

        return value

    def judges_code(self, block: str) -> str:
        """The code that measures pictures with the judges of ``block``."""
        judges = self.modules("judges", self.judges(block))
        return self.code(f"measure.{block}", *judges, *self.modules("backbones", self.judges_need(block)))

    # datasets, assets, backbones

    def sources(self, dataset: str) -> list[str]:
        """The files from which the faces of a dataset are made."""
        sources = discovery.load("faces", dataset)(self.parameters.datasets[dataset]).sources()
        return [self._written(str(path)) if path.parts[0] == ".masquerade" else str(path) for path in sources]

    def asset(self, role: str) -> str:
        """The file that identifies the bytes of an asset; jobs declare it instead of the asset."""
        return self._written(str(assets.write_identity(role)))

    def backbone_needs(self, backbone: str) -> tuple[str, ...]:
        """The backbones with which a backbone is trained."""
        return discovery.load("backbones", backbone).needs

    def published(self, backbone: str) -> str | list[str]:
        """The files that replace the training of a backbone; [] if it is trained here."""
        adopted = discovery.load("backbones", backbone)(self.parameters.backbones[backbone])
        if adopted.weights:
            return adopted_networks.files(adopted.weights)
        if adopted.asset:
            return self.asset(adopted.asset)
        return str(adopted.published) if adopted.published else []

    def checkpoints(self, backbones: Iterable[str]) -> list[str]:
        """The checkpoints of backbones."""
        return [self.paths.backbone.format(backbone=name) for name in backbones]

    # methods

    @property
    def published_knobs(self) -> list[str]:
        """The parameters that name the weights of methods and of ablations."""
        trained = [name for name in self.parameters.methods if self.capabilities(name).trains]
        return [f"methods.{name}.{key}" for name in trained for key in ("published", "published_ablations?")]

    def weights(self, wildcards: Any) -> list[str]:
        """Input function: the files that replace the training of a method or of an ablation; [] if it trains."""
        variant = getattr(wildcards, "variant", "")
        role = self.parameters.official(wildcards.method)
        if role and variant not in self.parameters.ablations(wildcards.method):
            return [self.asset(role)]
        return adopted_networks.files(self.parameters.weights(wildcards.method, variant))

    def needs(self, method: str) -> tuple[str, ...]:
        """The backbones that a method loads."""
        return discovery.load("methods", method).needs

    def capabilities(self, method: str) -> Capabilities:
        return discovery.load("methods", method).capabilities

    def checkpoint(self, cell: Any) -> str | list[str]:
        """Input function: the checkpoint of a cell, [] if its method does not train. An ablation has its own."""
        if not self.capabilities(cell.method).trains:
            return []
        ablated = cell.variant in self.parameters.ablations(cell.method)
        return self.paths.ablation if ablated else self.paths.method

    def kin_checkpoint(self, wildcards: Any) -> str | list[str]:
        """Input function: the checkpoint of the method's kin, if both have the same training; else []."""
        kin = discovery.load("methods", wildcards.method).kin
        if kin not in self.parameters.methods or self.weights(wildcards):
            return []
        own, other = (self.parameters.tree["methods"][name]["params"] for name in (wildcards.method, kin))
        same = all(own.get(knob) == value for knob, value in other.items())
        return self.paths.method.format(method=kin, seed=wildcards.seed) if same else []

    def method_inputs(self, wildcards: Any) -> dict[str, str | list[str]]:
        """Input function for ``unpack``: what a method gets beside the faces (`commands.METHOD_OPTIONS`)."""
        able, paths = self.capabilities(wildcards.method), self.paths
        return {
            "checkpoint": self.checkpoint(wildcards),
            "backbones": self.checkpoints(self.needs(wildcards.method)),
            "gallery": with_index(paths.faces.format(dataset=self.train_on)) if able.gallery else [],
            "fakes": paths.fakes if able.fakes else [],
            "latents": paths.latents if able.latents else [],
        }

    def has_train_split(self, dataset: str) -> bool:
        """Whether a dataset has a train split here. The attribute protocol splits the test set of the others."""
        return dataset == self.train_on

    # judges

    def judges(self, block: str) -> list[str]:
        """The judges of every set (``measure``), of the target (``target``) or of attempts (``recovery``)."""
        return getattr(self.parameters, block).judges

    def judges_need(self, block: str) -> list[str]:
        """The backbones that the judges of a block load."""
        judges = [discovery.load("judges", judge) for judge in self.judges(block)]
        return list(dict.fromkeys(name for judge in judges for name in judge.needs))

    def judge_assets(self, judges: Iterable[str]) -> list[str]:
        """What identifies the official weight files of judges."""
        return [self.asset(role) for judge in judges for role in discovery.load("judges", judge).assets]

    def judge_knobs(self, block: str) -> list[str]:
        return [f"judges.{name}" for name in self.judges(block)]

    @property
    def attacker(self) -> type:
        """The judge that decides whether an attack finds the person."""
        return discovery.load("judges", self.parameters.attacks.judge)

    # files of many cells

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

    def item_path(self, item: Any) -> str:
        """Where a table or figure lies, without its ending."""
        pattern = self.paths.table if item.kind == "table" else self.paths.figure
        return pattern.format(paper=item.paper, item=item.name)
