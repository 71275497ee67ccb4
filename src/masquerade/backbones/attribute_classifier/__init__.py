"""The classifier of face attributes, which only judges: parameters and training.

The architecture is in training.py; the judge that uses it is judges/attributes.py.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from masquerade.core.settings import Decay, Share, SmallScale
from masquerade.training.settings import Computed, OwnPublished, Updates


class AttributeClassifierSmallScale(SmallScale):
    """What small scales change."""

    optimizer: Literal["adam", "muon"] = "adam"
    """muon: for the weights of convolutions and the last layer, with Adam for the rest; it needs fewer images."""


class AttributeClassifierSettings(OwnPublished, Updates, Computed):
    """The network, its training and its floor."""

    sources = {
        "learning_rate": "or of Muon",
    }

    input_size: Annotated[int, Field(ge=8)]
    """Side in pixels of the network's input; the network resizes its crop to it."""
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    """Channels of the stages; each stage halves the image (64, 128, 256, 512, 512: VGG-16)."""
    units: Annotated[list[PositiveInt], Field(min_length=1)]
    """Convolutions of each stage (2, 2, 3, 3, 3: VGG-16)."""
    dropout: Decay
    """Share of the last features that a training step sets to 0 (0.5: VGG-16)."""
    small_scale: AttributeClassifierSmallScale = AttributeClassifierSmallScale()
    """What small scales change."""
    floor_balanced_accuracy: Share = 0.85
    """Smallest mean over attributes of the balanced accuracy on unseen people; below it the run stops."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.units) != len(self.widths):
            raise ValueError(f"units has {len(self.units)} stages and widths {len(self.widths)}")
        if self.input_size < 2 ** len(self.widths):
            raise ValueError(f"input_size is {self.input_size}; {len(self.widths)} stages halve it to nothing")
        return self
