"""The files and parameters that rules declare as inputs: of code, backbones, judges, methods and attackers.

A method that takes ``wildcards`` or a ``cell`` is an input function: any object with the wildcards as attributes will
do. `PlannedFiles` writes those that planning itself makes, below .masquerade/.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import assets
from masquerade.attackers import Attacker
from masquerade.core import discovery, fingerprints, weight_names
from masquerade.core.errors import ParameterError
from masquerade.methods import Capabilities
from masquerade.params import matrix
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.params.paths import CODE, Paths, index, with_index
from masquerade.pipeline import pretrained_networks

Names = Iterable[str] | Callable[[Any], Iterable[str]]
"""Names of modules, which may hold wildcards in braces; or the function of the wildcards that gives them."""


class PlannedFiles:
    """Writes fingerprints of code and identities of assets. ``announce`` is called with each path that is written."""

    def __init__(self, root: Path, announce: Callable[[str], None]):
        self.root, self._announce = root, announce
        self._fingerprints, self.asset = cache(self._fingerprints), cache(self.asset)

    def code(self, step: str, **modules: Names) -> Callable[[Any], str]:
        """Input function: the fingerprints of the code of a step, its program and the discovered modules that it loads.

        ``step``: the name of the program in workflow/scripts, then ``.`` and what tells apart several uses of it. It
        may hold wildcards in braces. ``modules``: room -> modules.
        """

        def value(wildcards: Any) -> str:
            words = dict(wildcards.items())
            paths = tuple(
                discovery.find_module(room, name.format(**words))
                for room, names in modules.items()
                for name in (names(wildcards) if callable(names) else names)
            )
            return self._fingerprints(step.format(**words), paths)

        return value

    def _fingerprints(self, step: str, modules: tuple[Path, ...]) -> str:
        roots = [self.root / "workflow/scripts" / f"{step.split('.')[0]}.py", *modules]
        fingerprints.write_fingerprints(self.root / CODE / f"{step}.json", roots, self.root)
        return self.written(f"{CODE}/{step}.json")

    def asset(self, role: str) -> str:
        """The file that identifies the bytes of an asset; jobs declare it instead of the asset."""
        return self.written(str(assets.write_identity(role)))

    def written(self, path: str) -> str:
        """Announce a file that planning has written, and return its path."""
        self._announce(path)
        return path


class BackboneInputs:
    """The backbones of one scale."""

    def __init__(self, parameters: Parameters, paths: Paths, planned: PlannedFiles):
        self.parameters, self.paths, self.planned = parameters, paths, planned

    def needs(self, backbone: str) -> tuple[str, ...]:
        """The backbones with which a backbone is trained."""
        return discovery.load("backbones", backbone).needs

    def published(self, backbone: str) -> str | list[str]:
        """The files that replace the training of a backbone; [] if it is trained here."""
        adopted = discovery.load("backbones", backbone)(self.parameters.backbones[backbone])
        if adopted.weights:
            return pretrained_networks.list_files(adopted.weights)
        if adopted.asset:
            return self.planned.asset(adopted.asset)
        return str(adopted.published) if adopted.published else []

    def drawn(self, name: str) -> list[str]:
        """The files that replace the drawing of the ``fakes`` or the ``distractors``; [] if they are drawn here."""
        published = getattr(self.parameters, name).published
        return pretrained_networks.list_files(weight_names.parse_weights_name(published))

    def checkpoints(self, backbones: Iterable[str]) -> list[str]:
        """The checkpoints of backbones."""
        return [self.paths.backbone.format(backbone=name) for name in backbones]


class JudgeInputs:
    """The judges of one scale. ``block``: ``measure``, ``target``, ``recovery``, ``informed`` or ``attacks``."""

    def __init__(self, parameters: Parameters, planned: PlannedFiles, backbones: BackboneInputs):
        self.parameters, self.planned, self.backbones = parameters, planned, backbones

    def names(self, block: str) -> list[str]:
        """The judges of a block."""
        settings = getattr(self.parameters, block)
        return [settings.judge] if block == "attacks" else settings.judges

    def needs(self, block: str) -> list[str]:
        """The backbones that they load, each once."""
        judges = [discovery.load("judges", judge) for judge in self.names(block)]
        return list(dict.fromkeys(name for judge in judges for name in judge.needs))

    def checkpoints(self, block: str) -> list[str]:
        """The checkpoints of these backbones."""
        return self.backbones.checkpoints(self.needs(block))

    def assets(self, block: str) -> Callable[[Any], list[str]]:
        """Input function: what identifies their official weight files."""
        judges = [discovery.load("judges", judge) for judge in self.names(block)]
        return lambda wildcards: [self.planned.asset(role) for judge in judges for role in judge.assets]

    def keys(self, block: str) -> list[str]:
        """Their parameters."""
        return [f"judges.{name}" for name in self.names(block)]

    def code(self, block: str) -> Callable[[Any], str]:
        """Input function: the code that measures images with them."""
        return self.planned.code(f"measure.{block}", judges=self.names(block), backbones=self.needs(block))


VARIANT_KEYS = (
    "methods.{method}.params",
    "methods.{method}.ablations.{variant}?",
    "methods.{method}.variants.{variant}",
)
"""The parameters of a method's checkpoint and of one of its variants."""


class MethodInputs:
    """The methods of one scale."""

    def __init__(self, parameters: Parameters, paths: Paths, planned: PlannedFiles, backbones: BackboneInputs):
        self.parameters, self.paths, self.planned, self.backbones = parameters, paths, planned, backbones
        # The methods with networks; a processor computes the others at once.
        self.neural = {name for name in parameters.methods if self.needs(name) or parameters.trains(name)}

    def needs(self, method: str) -> tuple[str, ...]:
        """The backbones that a method loads."""
        return self.parameters.needs(method)

    @property
    def all_needs(self) -> str:
        """Each method and the backbones that it loads, as a JSON list: a mapping would be taken for `params`."""
        return json.dumps([[name, self.needs(name)] for name in self.parameters.methods])

    def capabilities(self, method: str) -> Capabilities:
        return discovery.load("methods", method).capabilities

    @property
    def published_keys(self) -> list[str]:
        """The parameters that name the weights of methods and of ablations."""
        trained = [name for name in self.parameters.methods if self.capabilities(name).trains]
        return [f"methods.{name}.{key}" for name in trained for key in ("published", "published_ablations?")]

    def code(self, step: str) -> Callable[[Any], str]:
        """Input function: the code of a step for the wildcard's method and the backbones that it needs."""
        return self.planned.code(f"{step}.{{method}}", methods=["{method}"], backbones=lambda w: self.needs(w.method))

    def weights(self, wildcards: Any) -> list[str]:
        """The files that replace the training of a method or of an ablation; [] if it trains."""
        variant = getattr(wildcards, "variant", "")
        role = self.parameters.official_role(wildcards.method)
        if role and variant not in self.parameters.ablations(wildcards.method):
            return [self.planned.asset(role)]
        return pretrained_networks.list_files(self.parameters.weights_name(wildcards.method, variant))

    def checkpoint(self, cell: Any) -> str | list[str]:
        """The checkpoint of a cell, [] if its method does not train. An ablation has its own."""
        if not self.parameters.trains(cell.method):
            return []
        ablated = cell.variant in self.parameters.ablations(cell.method)
        return self.paths.ablation if ablated else self.paths.method

    def shared_checkpoint(self, wildcards: Any) -> str | list[str]:
        """The checkpoint of `Method.shares_training_with`, if both have the same training; else []."""
        partner = discovery.load("methods", wildcards.method).shares_training_with
        if partner not in self.parameters.methods or self.weights(wildcards):
            return []
        params, theirs = (self.parameters.tree["methods"][name]["params"] for name in (wildcards.method, partner))
        same = all(params.get(knob) == value for knob, value in theirs.items())
        return self.paths.method.format(method=partner, seed=wildcards.seed) if same else []

    def files(self, wildcards: Any) -> dict[str, str | list[str]]:
        """For ``unpack``: what a method gets beside the faces (`submission.METHOD_OPTIONS`)."""
        able, paths = self.capabilities(wildcards.method), self.paths
        gallery = paths.faces.format(dataset=self.parameters.matrix.train_on)
        return {
            "checkpoint": self.checkpoint(wildcards),
            "backbones": self.backbones.checkpoints(self.needs(wildcards.method)),
            "gallery": gallery if able.gallery else [],
            "gallery_index": index(gallery) if able.gallery else [],
            "fakes": paths.fakes if able.fakes else [],
            "latents": paths.latents if self.parameters.uses_latent_codes(wildcards.method) else [],
            "images": paths.imported if able.images else [],
        }


PER_IMAGE, SHARED = "per_image", "shared"
"""Images of which each has a key of its own, and images under one key (`Attacker.keys`)."""


class AttackerInputs:
    """The attackers who know the method at one scale. ``cells``: the attacked ones, of those that the scale builds.
    What another program made of the attackers' people is always attacked.

    Raises ParameterError if a cell is of a dataset without people of the attackers' group.
    """

    def __init__(self, parameters: Parameters, built: Sequence[Cell], paths: Paths):
        self.parameters, self.paths = parameters, paths
        train_on = parameters.matrix.train_on
        self.cells = matrix.select_matching(built, parameters.informed.cells)
        if parameters.informed.cells:
            self.cells += [cell for cell in matrix.select_imported(built) if cell.dataset == train_on]
        if other := sorted({cell.dataset for cell in self.cells} - {train_on}):
            raise ParameterError(
                f"informed.cells names {other[0]}, which has no people of the attackers' group: only the train split "
                f"of {train_on} (matrix.train_on) is dealt to groups. Move its patterns to {train_on}."
            )

    def of(self, cell: Any) -> list[str]:
        """The attackers whose attack is one on the method of a cell."""
        able, backbones = discovery.load("methods", cell.method).capabilities, self.parameters.needs(cell.method)
        return [name for name in self.parameters.attackers if _load(name).applies(able, backbones)]

    def needs(self, attackers: Iterable[str]) -> list[str]:
        """The backbones that attackers use, each once."""
        return list(dict.fromkeys(need for name in attackers for need in self._needs(name)))

    def _needs(self, name: str) -> tuple[str, ...]:
        return _load(name).needs(self.parameters.attackers[name])

    def faces(self, wildcards: Any) -> list[str]:
        """Input function: the images from which an attacker learns."""
        return self._pictures(_load(wildcards.attacker).keys)

    def own_faces(self) -> list[str]:
        """The attackers' images with keys of their own."""
        return self._pictures(PER_IMAGE)

    def insider_faces(self, wildcards: Any) -> list[str]:
        """Input function: the images under one key of the wildcards' cell; [] if its method takes no key."""
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
        """The archives of all attackers' images."""
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
