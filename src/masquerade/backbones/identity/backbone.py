"""The identity encoder in the losses of the methods: IR-SE with an ArcFace margin."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.backbones import Backbone
from masquerade.backbones.identity.settings import IdentitySettings
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.backbones.recognition.training import Recogniser


class Identity(Backbone):
    """Deng et al. 2019 (ArcFace), the network of IdentityDP's section IV.A; published size: IR-SE-50 at 112 pixels.

    Its embedding has 512 numbers and length 1. No judge that is trained here has its architecture, its identities or
    its seed. The judge ``arcface`` is the published network itself.
    """

    title = "identity encoder (IR-SE, ArcFace)"
    source = "trained here on the people of the backbones"

    architecture = ("widths", "units", "recognition.input_size")
    Params = IdentitySettings
    params: IdentitySettings

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.recognition import training
        from masquerade.networks.ir_se import IRSE

        facts: dict[str, Any] = {"widths": self.params.widths, "units": self.params.units}
        size = self.params.recognition.input_size
        training.train("identity", lambda: IRSE(size, **facts), self.params.recognition, job, facts)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones.identity import published_weights

        published_weights.adopt(self.params, published, job.checkpoint)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones.recognition import training

        return training.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Recogniser":
        from masquerade.backbones.recognition import training
        from masquerade.networks.ir_se import IRSE

        return training.load(lambda facts: IRSE(facts["input_size"], facts["widths"], facts["units"]), checkpoint)

    def floors(self) -> dict[str, float]:
        return {"auc": self.params.recognition.floor_auc, "tar_at_far_0.01": self.params.recognition.floor_tar}
