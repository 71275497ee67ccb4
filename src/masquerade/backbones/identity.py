"""The identity encoder of the methods' losses: IR-SE with an ArcFace margin."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.backbones._settings import RecognitionSettings
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._recognition import Recogniser


class Identity(Backbone):
    """Deng et al. 2019 (ArcFace), the network of IdentityDP's section IV.A; published size: IR-SE-50 at 112 pixels.

    Its embedding has 512 numbers and length 1. No judge that is trained here shares its architecture, its identities or
    its seed; the judge ``arcface`` is the published network itself.
    """

    title = "identity encoder (IR-SE, ArcFace)"
    source = "trained here on the first part of the training identities"

    class Params(Settings):
        published: str
        """model_ir_se50.pth in the place of a training, ``asset:ir_se50``, ``path`` or ``path#sha256=<sum>``; '':
        trained here. It sees FALCO's crop of a picture, which lies in the checkpoint."""
        widths: Annotated[list[int], Field(min_length=5, max_length=5)]
        """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
        units: Annotated[list[int], Field(min_length=4, max_length=4)]
        """Blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
        recognition: RecognitionSettings
        """On whom it is trained, how, and how good it must be."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _recognition
        from masquerade.networks.ir_se import IRSE

        facts = {"widths": self.params.widths, "units": self.params.units}
        size = self.params.recognition.input_size
        _recognition.train("identity", lambda: IRSE(size, **facts), self.params.recognition, job, facts)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones import _identity_published

        _identity_published.adopt(self.params, published, job.checkpoint)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _recognition

        return _recognition.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recogniser":
        from masquerade.backbones import _recognition
        from masquerade.networks.ir_se import IRSE

        return _recognition.load(lambda facts: IRSE(facts["input_size"], facts["widths"], facts["units"]), checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
