"""Frozen networks by role (identity, recognisers, and later generator, inversion, semantics, parsing, landmarks).

At ``mini`` scale they are trained here by ``backbones.smk``; each has a checkpoint, a run, and a quality figure
with a floor below which the run stops.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import nn


class Backbone(ABC):
    """What a module of backbones/ defines, once: a subclass with its ``Params`` (its block under ``backbones:``).

    Importing the module must not import torch; do it in the functions.
    """

    title: ClassVar[str]
    source: ClassVar[str]

    class Params(Settings):
        pass

    def __init__(self, params: Settings):
        self.params = params

    @abstractmethod
    def train(self, job: TrainingJob) -> dict[str, float]:
        """Train, write ``job.checkpoint``, and return its quality figures.

        They are measured on the validation split, whose identities were never trained on.
        """

    @classmethod
    @abstractmethod
    def load(cls, checkpoint: Path) -> "nn.Module":
        """The network, frozen, in evaluation mode. Its architecture is read from the checkpoint. Strict."""

    @abstractmethod
    def floors(self) -> dict[str, float]:
        """The quality figures below which the run stops."""


BASE = Backbone
