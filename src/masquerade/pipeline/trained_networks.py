"""What a build of a scale trains and can export, and the parameters and terms on which each network depends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from masquerade.core import discovery, own_weights
from masquerade.lineage import crate
from masquerade.methods.latent import SetOfFakes
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import adopted_networks
from masquerade.training import cards
from masquerade.training.cards import Card

TESTED = "test"
"""The split that no training and no quality figure reads: its numbers of people are in no card."""


@dataclass(frozen=True)
class Trained:
    """A network of a build that can be exported."""

    name: str
    """Its name in weights/, after that of the scale's collection: ``photo/identity``."""
    room: str
    """``backbones`` or ``methods``; '' for the set of fakes."""
    module: str
    variant: str = ""
    """The variant of an ablation."""

    @property
    def block(self) -> str:
        return f"{self.room}.{self.module}" if self.room else self.module

    @property
    def cls(self) -> Any:
        return discovery.load(self.room, self.module) if self.room else SetOfFakes

    def needs(self, parameters: Parameters) -> tuple[str, ...]:
        """The backbones that it was trained with."""
        return parameters.needs(self.module) if self.room == "methods" else self.cls.needs

    def checkpoint(self, paths: Paths, seed: int) -> str:
        """The checkpoint of the build."""
        if self.room == "backbones":
            return paths.backbone.format(backbone=self.module)
        if not self.room:
            return paths.fakes
        pattern = paths.ablation if self.variant else paths.method
        return pattern.format(method=self.module, variant=self.variant, seed=seed)

    def keys(self, train_on: str) -> tuple[str, ...]:
        """The slice of the parameters that its training depends on."""
        if not self.room:
            return self.block, "data_seed", "image.size", f"datasets.{train_on}"
        shared = ("data_seed", "people", "image.size", "matrix.train_on", f"datasets.{train_on}")
        if self.room == "backbones":
            return self.block, *shared
        ablation = (f"{self.block}.ablations.{self.variant}",) if self.variant else ()
        return f"{self.block}.params", *ablation, *shared


def networks(parameters: Parameters) -> list[Trained]:
    """What a scale trains: backbones, each after those that it needs, methods with their ablations, and the fakes."""
    needs = {name: discovery.load("backbones", name).needs for name in parameters.backbones}
    ordered = [name for name in TopologicalSorter(needs).static_order() if name in needs]
    folder = f"{parameters.collection}/" if parameters.collection else ""
    result = [Trained(f"{folder}{name}", "backbones", name) for name in ordered]
    for name in parameters.methods:
        if parameters.trains(name):
            for variant in ("", *parameters.ablations(name)):
                full = f"{folder}{name}.{variant}" if variant else f"{folder}{name}"
                result.append(Trained(full, "methods", name, variant))
    return [*result, Trained(f"{folder}{adopted_networks.FAKES}", "", adopted_networks.FAKES)]


def slice_of(parameters: Parameters, trained: Trained) -> dict[str, Any]:
    """The parameters that the training of a network depends on, without what concerns the test split alone."""
    train_on = parameters.matrix.train_on
    values = parameters.slice(trained.keys(train_on))
    dataset = f"datasets.{train_on}"
    return json.loads(json.dumps({**values, dataset: _without_test(values[dataset])}))


def terms_of(parameters: Parameters, trained: Trained) -> str:
    """The terms of use of a network, from the faces and the networks that it learned from; '' for none."""
    own = [trained.module] if trained.room == "backbones" else []
    return parameters.terms_of([parameters.matrix.train_on], [*own, *trained.needs(parameters)])


def _without_test(tree: Any) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {key: _without_test(value) for key, value in tree.items() if key != TESTED}


def drift(card: Card, parameters: Parameters) -> list[str]:
    """How the parameters of the scale that trained a network differ from its card now, one line for each key."""
    trained = next((one for one in networks(parameters) if one.name == card.name), None)
    if trained is None:
        return [f"{cards.card_path(card.name)}: scale {card.scale} has no network '{card.name}' any more."]
    terms = terms_of(parameters, trained)
    stated, due = (card.license, card.terms), (crate.license_of_networks(terms), terms)
    itself = f"{own_weights.PREFIX}{card.name}"  # which the scale that trained it may adopt since
    return [
        f"{cards.card_path(card.name)}: {key} was {there} in the training, and scale {card.scale} has {here} now."
        for key, there, here in cards.differences(card.parameters, slice_of(parameters, trained))
        if here != itself
    ] + [
        f"{cards.card_path(card.name)}: it states {stated[0]} ({stated[1] or 'no terms'}), and what it learned from "
        f"requires {due[0]} ({due[1] or 'no terms'})."
    ] * (stated != due)
