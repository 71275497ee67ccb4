"""Finds the files and parameters of methods: for their training, and for all that uses a trained method.

A method that takes ``wildcards`` or a ``cell`` is an input function.
"""

import json
from collections.abc import Callable
from typing import Any

from masquerade.core import discovery
from masquerade.methods import Capabilities
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths, index
from masquerade.pipeline import adopted_networks
from masquerade.pipeline.backbone_inputs import BackboneInputs
from masquerade.pipeline.planned_files import PlannedFiles

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
        role = self.parameters.official(wildcards.method)
        if role and variant not in self.parameters.ablations(wildcards.method):
            return [self.planned.asset(role)]
        return adopted_networks.files(self.parameters.weights(wildcards.method, variant))

    def checkpoint(self, cell: Any) -> str | list[str]:
        """The checkpoint of a cell, [] if its method does not train. An ablation has its own."""
        if not self.parameters.trains(cell.method):
            return []
        ablated = cell.variant in self.parameters.ablations(cell.method)
        return self.paths.ablation if ablated else self.paths.method

    def kin_checkpoint(self, wildcards: Any) -> str | list[str]:
        """The checkpoint of the method's kin, if both have the same training; else []."""
        kin = discovery.load("methods", wildcards.method).kin
        if kin not in self.parameters.methods or self.weights(wildcards):
            return []
        own, other = (self.parameters.tree["methods"][name]["params"] for name in (wildcards.method, kin))
        same = all(own.get(knob) == value for knob, value in other.items())
        return self.paths.method.format(method=kin, seed=wildcards.seed) if same else []

    def files(self, wildcards: Any) -> dict[str, str | list[str]]:
        """For ``unpack``: what a method gets beside the faces (`commands.METHOD_OPTIONS`)."""
        able, paths = self.capabilities(wildcards.method), self.paths
        gallery = paths.faces.format(dataset=self.parameters.matrix.train_on)
        return {
            "checkpoint": self.checkpoint(wildcards),
            "backbones": self.backbones.checkpoints(self.needs(wildcards.method)),
            "gallery": gallery if able.gallery else [],
            "gallery_index": index(gallery) if able.gallery else [],
            "fakes": paths.fakes if able.fakes else [],
            "latents": paths.latents if self.parameters.takes_codes(wildcards.method) else [],
        }
