"""Finds the files and parameters of the judges that a block of params.yaml names."""

from collections.abc import Callable
from typing import Any

from masquerade.core import discovery
from masquerade.params.parameters import Parameters
from masquerade.pipeline.backbone_inputs import BackboneInputs
from masquerade.pipeline.planned_files import PlannedFiles


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
        """Input function: the code that measures pictures with them."""
        return self.planned.code(f"measure.{block}", judges=self.names(block), backbones=self.needs(block))
