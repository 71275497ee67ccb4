"""The base class of recognizer A and B, which only judge: Inception-ResNet, or EfficientNet-Lite0 for photographs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from masquerade.backbones.recognition.base import RecognizerBackbone
from masquerade.backbones.recognition.settings import PhotographSettings, RecognitionSettings
from masquerade.training.settings import OwnPublished

if TYPE_CHECKING:
    from torch import nn

SMALLEST_INPUT = 75  # with fewer pixels, the convolutions without padding leave none


class InceptionRecognizer(RecognizerBackbone):
    """Inception-ResNet-v1 (FaceNet's architecture; published size: width 1, repeats 5, 10, 5, at 160 pixels).

    For photographs it is EfficientNet-Lite0, which learned ImageNet before (``photographs`` of its parameters).
    """

    architecture = ("width", "repeats", "recognition.input_size")

    class Params(OwnPublished):
        width: Annotated[float, Field(gt=0)]
        """Factor of every number of channels (1: FaceNet's public models)."""
        repeats: tuple[int, int, int]
        """Blocks of each kind (5, 10, 5: FaceNet's public models)."""
        photographs: PhotographSettings | None = None
        """The training for photographs, whose network has no width and repeats; null: Inception-ResNet."""
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
    trunk = "efficientnet_lite0"

    def facts(self) -> dict[str, Any]:
        return {"width": self.params.width, "repeats": list(self.params.repeats)}

    @staticmethod
    def drawn(facts: Mapping[str, Any]) -> "nn.Module":
        from masquerade.networks.inception_resnet import InceptionResnetV1

        return InceptionResnetV1(facts["width"], facts["repeats"])
