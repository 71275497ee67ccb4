"""The base class of recogniser A and B, which only judge: Inception-ResNet with an ArcFace margin."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from masquerade.backbones import Backbone
from masquerade.backbones.recognition.settings import RecognitionSettings
from masquerade.core import discovery
from masquerade.core.own_weights import OwnWeights
from masquerade.core.settings import Settings
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.backbones.recognition.training import Recogniser


SMALLEST_INPUT = 75  # with fewer pixels, the convolutions without padding leave none


class InceptionRecogniser(Backbone):
    """Inception-ResNet-v1 (FaceNet's architecture; published size: width 1, repeats 5, 10, 5, at 160 pixels)."""

    architecture = ("width", "repeats", "recognition.input_size")

    class Params(Settings):
        published: OwnWeights
        """Weights to adopt instead of a training: ``weights:<name>``; '': trained here."""
        width: Annotated[float, Field(gt=0)]
        """Factor of every number of channels (1: FaceNet's public models)."""
        repeats: tuple[int, int, int]
        """Blocks of each kind (5, 10, 5: FaceNet's public models)."""
        recognition: RecognitionSettings
        """Its training identities, its training, and its floors."""

        @field_validator("recognition")
        @classmethod
        def _large_enough(cls, settings: RecognitionSettings) -> RecognitionSettings:
            if settings.input_size < SMALLEST_INPUT:
                raise ValueError(
                    f"input_size is {settings.input_size}; the network needs at least {SMALLEST_INPUT} pixels"
                )
            return settings

    params: Params
    people = "judges"

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import training
        from masquerade.networks.inception_resnet import InceptionResnetV1

        facts = {"width": self.params.width, "repeats": list(self.params.repeats)}
        name = discovery.name_of(type(self))
        training.train(name, lambda: InceptionResnetV1(**facts), self.params.recognition, job, facts)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones.recognition import training

        return training.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recogniser":
        from masquerade.backbones.recognition import training
        from masquerade.networks.inception_resnet import InceptionResnetV1

        return training.load(lambda facts: InceptionResnetV1(facts["width"], facts["repeats"]), checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
