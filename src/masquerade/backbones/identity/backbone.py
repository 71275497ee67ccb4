"""The identity encoder in the losses of the methods: IR-SE with an ArcFace margin."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.backbones.identity.settings import IdentitySettings
from masquerade.backbones.recognition.base import RecognizerBackbone
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import nn


class Identity(RecognizerBackbone):
    """Deng et al. 2019 (ArcFace), the network of IdentityDP's section IV.A; published size: IR-SE-50 at 112 pixels.

    For photographs it is MobileNetV2, which learned ImageNet before (``photographs`` of its parameters).
    Its embedding has 512 numbers and length 1. No judge that is trained here has its architecture, its identities or
    its seed. The judge ``arcface`` is the published network itself.
    """

    title = "identity encoder (IR-SE, ArcFace)"
    source = "trained here on the people of the backbones"

    architecture = ("widths", "units", "recognition.input_size")
    Params = IdentitySettings
    params: IdentitySettings
    trunk = "mobilenet_v2"

    def facts(self) -> dict[str, Any]:
        return {"widths": self.params.widths, "units": self.params.units}

    @staticmethod
    def drawn(facts: Mapping[str, Any]) -> "nn.Module":
        from masquerade.networks.ir_se import IRSE

        return IRSE(facts["input_size"], facts["widths"], facts["units"])

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones.identity import published_weights

        published_weights.adopt(self.params, published, job.checkpoint)
