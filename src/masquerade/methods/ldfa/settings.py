"""The knobs of LDFA. The paper takes Stable Diffusion and trains nothing; the trainings are ours (docs/ldfa.md)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from masquerade.core.settings import Settings

Width = Annotated[int, Field(ge=4)]


class PhaseSettings(Settings):
    """One of the two trainings."""

    widths: Annotated[list[Width], Field(min_length=1)]
    """Channels of the network, one entry a halving (autoencoder) or a size (denoiser)."""
    steps: Annotated[int, Field(ge=1)]
    """Updates."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures of one update."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate of Adam."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Learning rate of Muon, for the kernels (0: Adam for these too)."""


class LdfaSettings(Settings):
    """All knobs of LDFA."""

    size: Annotated[int, Field(ge=16)]
    """Side in pixels of the pictures that the networks take."""
    latent: Annotated[int, Field(ge=1)]
    """Channels of the latent maps (4: Stable Diffusion)."""
    autoencoder: PhaseSettings
    """The autoencoder."""
    denoiser: PhaseSettings
    """The diffusion model."""
    edges: Annotated[float, Field(ge=0)]
    """Weight of the error of differences between neighbouring pixels, in the loss of the autoencoder."""
    boxes: Annotated[float, Field(ge=0, le=1)]
    """Share of the training masks that are face boxes; the others are random boxes."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, at the end of each training, over which its rates fall to a fiftieth."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay of the averages of the weights, which are saved (0: the last weights)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two sample pictures."""

    @model_validator(mode="after")
    def _halves(self) -> Self:
        halvings = len(self.autoencoder.widths) + len(self.denoiser.widths) - 1
        if self.size % 2**halvings:
            raise ValueError(f"size is {self.size}; the two networks halve it {halvings} times")
        return self
