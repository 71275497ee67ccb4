"""The classifier of attributes: what a face shows, learnt from real annotated faces. It only judges."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._attribute_classifier import Classifier

ATTRIBUTES = (
    "Male", "Young", "Smiling", "Heavy_Makeup", "Blond_Hair", "Black_Hair", "Brown_Hair", "Gray_Hair", "Wavy_Hair",
)  # fmt: skip
"""CelebA's names of the contents of LReOrg's Table 1, in the order of the logits. Length is not among CelebA's 40."""

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class AttributeClassifier(Backbone):
    """The "pre-trained classifiers" of LReOrg (section 4.1), of which it says no more: ResNet-18 (He et al. 2016).

    One network with one logit for each of `ATTRIBUTES`, trained on the annotations of the train split: real pictures
    alone, and nothing of the text-image model that LReOrg learns from.
    """

    title = "classifier of attributes (ResNet-18)"
    source = "trained here on the annotations of the train split"

    class Params(Settings):
        input_size: Annotated[int, Field(ge=32)]
        """Side in pixels of the network's input; pictures are brought to it inside (224: He et al. 2016)."""
        width: Annotated[int, Field(ge=4)]
        """Channels of the stem; the four stages have 1, 2, 4 and 8 times as many (64: ResNet-18)."""
        stride: Literal[2, 4, 8]
        """Pixels of the input per position of the second stage (8: ResNet-18); small pictures need a smaller one."""
        dropout: Annotated[float, Field(ge=0, lt=1)]
        """Share of the last features that a training step leaves out."""
        steps: Count
        """Batches."""
        batch: Annotated[int, Field(ge=2)]
        """Pictures in a batch."""
        optimiser: Literal["adam", "muon"]
        """muon: for the weights of convolutions and the last layer, with Adam for the rest; it needs fewer pictures."""
        learning_rate: Annotated[float, Field(gt=0)]
        """The largest one."""
        cooldown: Share
        """Over this last share of the steps the learning rate falls to a fiftieth."""
        balance: Share
        """Weight of a label = (share of the pictures with that label) ** -balance, mean 1 over the pictures: 1 lets
        those that have an attribute weigh as much as those that have it not, so that 0.5 is a fair threshold."""
        floor_balanced_accuracy: Share
        """Mean over attributes of the balanced accuracy on unseen people below which the run stops."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _attribute_classifier

        _attribute_classifier.train(self.params, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _attribute_classifier

        return _attribute_classifier.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Classifier":
        from masquerade.backbones import _attribute_classifier

        return _attribute_classifier.load(checkpoint)

    def floors(self) -> dict[str, float]:
        return {"balanced_accuracy": self.params.floor_balanced_accuracy}
