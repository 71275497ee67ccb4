"""What the two recognisers share that only judge: Inception-ResNet with an ArcFace margin."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from masquerade.backbones import Backbone
from masquerade.backbones._settings import RecognitionSettings
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._recognition import Recogniser


SMALLEST_INPUT = 75  # below it, the convolutions without padding leave no pixel


class InceptionRecogniser(Backbone):
    """Inception-ResNet-v1 (FaceNet's architecture; published size: width 1, repeats 5, 10, 5, at 160 pixels)."""

    class Params(Settings):
        width: Annotated[float, Field(gt=0)]
        """Factor of every number of channels (1: FaceNet's public models)."""
        repeats: tuple[int, int, int]
        """Blocks of each kind (5, 10, 5: FaceNet's public models)."""
        recognition: RecognitionSettings
        """On whom it is trained, how, and how good it must be."""

        @field_validator("recognition")
        @classmethod
        def _large_enough(cls, given: RecognitionSettings) -> RecognitionSettings:
            if given.input_size < SMALLEST_INPUT:
                raise ValueError(
                    f"input_size is {given.input_size}; the network needs at least {SMALLEST_INPUT} pixels"
                )
            return given

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _recognition
        from masquerade.networks.inception_resnet import InceptionResnetV1

        facts = {"width": self.params.width, "repeats": list(self.params.repeats)}
        name = type(self).__module__.rpartition(".")[2]
        _recognition.train(name, lambda: InceptionResnetV1(**facts), self.params.recognition, job, facts)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _recognition

        return _recognition.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recogniser":
        from masquerade.backbones import _recognition
        from masquerade.networks.inception_resnet import InceptionResnetV1

        return _recognition.load(lambda facts: InceptionResnetV1(facts["width"], facts["repeats"]), checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
