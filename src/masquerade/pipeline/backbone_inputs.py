"""Finds the files of backbones: their checkpoints, and what replaces their training."""

from collections.abc import Iterable

from masquerade.core import discovery, own_weights
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import adopted_networks
from masquerade.pipeline.planned_files import PlannedFiles


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
            return adopted_networks.files(adopted.weights)
        if adopted.asset:
            return self.planned.asset(adopted.asset)
        return str(adopted.published) if adopted.published else []

    def fakes(self) -> list[str]:
        """The files that replace the drawing of the fakes; [] if they are drawn here."""
        return adopted_networks.files(own_weights.name_of(self.parameters.fakes.published))

    def checkpoints(self, backbones: Iterable[str]) -> list[str]:
        """The checkpoints of backbones."""
        return [self.paths.backbone.format(backbone=name) for name in backbones]
