"""The classifier of face attributes, which only judges: parameters and training.

The architecture is in training.py; the judge that uses it is judges/attributes.py.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from masquerade.core.settings import Decay, Share, SmallScale
from masquerade.training.settings import Computed, OwnPublished, Updates


class AttributeClassifierSmallScale(SmallScale):
    """How the training of the attribute classifier differs at a small scale."""

    optimizer: Literal["adam", "muon"] = "adam"
    """The optimizer: adam, or muon for the weights of the convolutions and of the last layer, with Adam for the rest.
    Muon needs fewer images."""


class AttributeClassifierSettings(OwnPublished, Updates, Computed):
    """The network, its training and its floor."""

    sources = {
        "learning_rate": "or of Muon",
    }

    input_size: Annotated[int, Field(ge=8)]
    """Side in pixels of the input, to which the network resizes its crop of an image."""
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    """Number of channels of each stage; every stage halves the image (64, 128, 256, 512, 512: VGG-16)."""
    units: Annotated[list[PositiveInt], Field(min_length=1)]
    """Number of convolutions of each stage (2, 2, 3, 3, 3: VGG-16)."""
    dropout: Decay
    """Share of the last features that dropout sets to 0 in a training step (0.5: VGG-16)."""
    small_scale: AttributeClassifierSmallScale = AttributeClassifierSmallScale()
    """How the training differs at a small scale."""
    floor_balanced_accuracy: Share = 0.85
    """Smallest balanced accuracy, averaged over the attributes, on people that the network has not seen. A training
    that stays below it fails."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.units) != len(self.widths):
            raise ValueError(f"units has {len(self.units)} stages and widths {len(self.widths)}")
        if self.input_size < 2 ** len(self.widths):
            raise ValueError(f"input_size is {self.input_size}; {len(self.widths)} stages halve it to nothing")
        return self
