"""The classifier of attributes: what a face shows, learnt from real annotated faces. It only judges."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

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
    """The "pre-trained classifiers" of LReOrg (section 4.1), of which it says no more: a VGG (Simonyan and Zisserman
    2015) with strides in the place of maxima (Springenberg et al. 2015).

    One network with one logit for each of `ATTRIBUTES`, trained on the annotations of the train split: real pictures
    alone, and nothing of the text-image model that LReOrg learns from.
    """

    title = "classifier of attributes (VGG)"
    source = "trained here on the annotations of the train split"

    class Params(Settings):
        crop: tuple[Share, Share, Share, Share]
        """What is looked at of an aligned picture: left, top, right, bottom as shares of its side."""
        input_size: Annotated[int, Field(ge=8)]
        """Side in pixels of the network's input; the crop is brought to it inside."""
        widths: Annotated[list[Count], Field(min_length=1)]
        """Channels of the stages, each of which halves the picture (64, 128, 256, 512, 512: VGG-16)."""
        units: Annotated[list[Count], Field(min_length=1)]
        """Convolutions of each stage (2, 2, 3, 3, 3: VGG-16)."""
        dropout: Annotated[float, Field(ge=0, lt=1)]
        """Share of the last features that a training step leaves out (0.5: VGG-16)."""
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

        @model_validator(mode="after")
        def _fits(self) -> Self:
            left, top, right, bottom = self.crop
            if not (left < right and top < bottom):
                raise ValueError(f"crop is {list(self.crop)}; left must lie before right, and top above bottom")
            if len(self.units) != len(self.widths):
                raise ValueError(f"units has {len(self.units)} stages and widths {len(self.widths)}")
            if self.input_size < 2 ** len(self.widths):
                raise ValueError(f"input_size is {self.input_size}; {len(self.widths)} stages halve it to nothing")
            return self

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
