"""The base class of all recognisers: a network with an ArcFace margin."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.backbones import Backbone
from masquerade.core import discovery
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from torch import nn

    from masquerade.backbones.recognition.training import Recogniser


class RecogniserBackbone(Backbone):
    """Trains a network on a part of the people of its group. ``params.recognition`` are `RecognitionSettings`."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The architecture that its checkpoint states, beside ``input_size``."""

    @staticmethod
    @abstractmethod
    def network(facts: Mapping[str, Any]) -> "nn.Module":
        """The untrained network with the facts of a checkpoint."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import training

        training.train(discovery.name_of(type(self)), self.network, self.params.recognition, job, self.facts())

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones.recognition import training

        return training.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recogniser":
        from masquerade.backbones.recognition import training

        return training.load(cls.network, checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
