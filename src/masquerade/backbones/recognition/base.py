"""The base class of all recognizers: a network with an ArcFace margin."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from masquerade.backbones import Backbone
from masquerade.core import discovery
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from torch import nn

    from masquerade.backbones.recognition.training import Recognizer
    from masquerade.networks.imagenet_recognizer import Trunk


class RecognizerBackbone(Backbone):
    """Trains a network on a part of the people of its group. ``params.recognition`` are `RecognitionSettings`."""

    trunk: ClassVar["Trunk"]
    """The network with ImageNet's weights of a training for photographs (``photographs`` of the parameters)."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The architecture that its checkpoint states, beside ``input_size``."""

    @staticmethod
    @abstractmethod
    def drawn(facts: Mapping[str, Any]) -> "nn.Module":
        """The untrained network of a training without ``photographs``, with the facts of a checkpoint."""

    @classmethod
    def network(cls, facts: Mapping[str, Any]) -> "nn.Module":
        """The untrained network with the facts of a checkpoint."""
        if "network" not in facts:
            return cls.drawn(facts)
        from masquerade.networks.imagenet_recognizer import ImageNetRecognizer

        return ImageNetRecognizer(facts["network"], facts["input_size"])

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import photographs, training

        name, params = discovery.name_of(type(self)), self.params
        if params.photographs is None:
            training.train(name, self.network, params.recognition, job, self.facts())
        else:
            photographs.train(name, self.trunk, params.photographs, params.recognition, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones.recognition import training

        return training.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recognizer":
        from masquerade.backbones.recognition import training

        return training.load(cls.network, checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
