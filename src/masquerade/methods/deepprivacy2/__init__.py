"""DeepPrivacy2 for faces (Hukkelås and Lindseth 2023): an inpainter that gets a random style and no keypoints.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of the
published code for faces (FDF256).
"""

from typing import Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from masquerade.core.settings import Settings
from masquerade.methods._inpainting import InpaintingSettings, LossSettings
from masquerade.training.settings import Weight, Width


class GeneratorSettings(Settings):
    """The shape of the generator."""

    size: Annotated[int, Field(ge=16)]
    """Side in pixels of the images that the generator gives (256)."""
    lowest: Annotated[int, Field(ge=4)]
    """Side in pixels of its coarsest feature maps (8)."""
    width: Width
    """Number of channels at full size; each halving doubles it (64)."""
    most: PositiveInt
    """Largest number of channels, as a multiple of ``width`` (8)."""
    style: Annotated[int, Field(ge=4)]
    """Number of random numbers at the input, which is also the width of the styles (512)."""

    @model_validator(mode="after")
    def _halves(self) -> Self:
        levels = self.size // self.lowest
        if self.size % self.lowest or levels & (levels - 1) or self.size & (self.size - 1):
            raise ValueError(f"size {self.size} and lowest {self.lowest} must be powers of two, size the larger one")
        return self


class DeepPrivacy2Losses(LossSettings):
    """The weights of the losses."""

    r1: Weight
    """Weight of the R1 penalty of the critic (1)."""
    drift: Weight
    """Weight of the mean square of the critic's scores of unprotected images (0.001)."""


class DeepPrivacy2Settings(InpaintingSettings):
    """The parameters of DeepPrivacy2."""

    generator: GeneratorSettings
    """The shape of the generator."""
    critic: Annotated[list[Width], Field(min_length=2)]
    """Number of channels of the critic at 4, 8, ... ``generator.size`` pixels (640 up to 32 pixels, then 320, 160,
    80)."""
    losses: DeepPrivacy2Losses  # pyright: ignore[reportIncompatibleVariableOverride]
    """The weights of the losses."""
    r1_every: PositiveInt
    """Number of updates of the critic from one with the R1 penalty to the next; the penalty is then multiplied by this
    number (16)."""

    @property
    def size(self) -> int:
        """Side in pixels of the images that the network draws."""
        return self.generator.size

    @model_validator(mode="after")
    def _critic_fits(self) -> Self:
        levels = self.generator.size.bit_length() - 2
        if len(self.critic) != levels:
            raise ValueError(f"critic has {len(self.critic)} entries; images of {self.generator.size} need {levels}")
        return self
