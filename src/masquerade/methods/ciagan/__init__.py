"""CIAGAN (Maximov et al. 2020, arXiv:2005.09544): an inpainter that gets lines along landmarks and another's label.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of the
published code.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from masquerade.core.settings import Settings
from masquerade.methods._inpainting import InpaintingSettings, InpaintingSmallScale, LossSettings
from masquerade.training.settings import Weight, Width

BOTTOM = 4  # side in pixels of the coarsest maps


class CriticSettings(Settings):
    """Widths of the critic."""

    widths: Annotated[list[Width], Field(min_length=1)]
    """Number of channels after each halving (64, 128, 256, 512, 512)."""
    hidden: Width
    """Width of the dense layer before the score (1,024)."""


class CiaganLosses(LossSettings):
    """The weights of the losses."""

    identity: Weight
    """Weight of the distance between the generated face and the chosen person (1)."""


class CiaganSmallScale(InpaintingSmallScale):
    """How the training differs from the published one at a small scale (docs/inpainting.md)."""

    compared_by: Literal["siamese", "identity"] = "siamese"
    """The network that compares a generated face with the chosen person: siamese is trained together with the generator
    (the published code), and identity is the frozen identity encoder (ours: docs/inpainting.md)."""


class CiaganSettings(InpaintingSettings):
    """The parameters of CIAGAN."""

    down: Annotated[list[Width], Field(min_length=2)]
    """Number of channels of the generator after each halving, down to 4 x 4 pixels (32, 64, 128, 256, 256 at 128
    pixels)."""
    up: Annotated[list[Width], Field(min_length=2)]
    """Number of channels of the generator after each doubling (256, 128, 64, 32, 16)."""
    blocks: NonNegativeInt
    """Number of residual blocks at 4 x 4 pixels (4)."""
    labels: Annotated[int, Field(ge=2)]
    """Number of people of the training whose identities the generator can give (1,200)."""
    identity: Annotated[list[Annotated[int, Field(ge=16)]], Field(min_length=1)]
    """Widths of the layers that read the label of the chosen person; the last is a multiple of 16 (256 four times, 512
    three times)."""
    critic: CriticSettings
    """The critic."""
    embedding: Annotated[int, Field(ge=2)]
    """Length of an embedding of the siamese network (1,200)."""
    losses: CiaganLosses  # pyright: ignore[reportIncompatibleVariableOverride]
    """The weights of the losses."""
    small_scale: CiaganSmallScale = CiaganSmallScale()  # pyright: ignore[reportIncompatibleVariableOverride]
    """How the training differs from the published one at a small scale."""

    @model_validator(mode="after")
    def _shapes_fit(self) -> Self:
        if len(self.down) != len(self.up):
            raise ValueError(
                f"down has {len(self.down)} entries and up {len(self.up)}: give as many doublings as halvings"
            )
        if self.identity[-1] % BOTTOM**2:
            raise ValueError(f"identity ends with {self.identity[-1]}; a multiple of {BOTTOM**2} is needed")
        return self

    @property
    def size(self) -> int:
        """Side in pixels of the images that the network draws."""
        return BOTTOM * 2 ** len(self.down)
