"""LDFA (Klemp et al. 2023, arXiv:2302.08931): a latent diffusion model draws the box of the face.

The parameters are here. The class is in method.py, which imports no torch. The paper takes Stable Diffusion and trains
nothing; the trainings are ours (docs/inpainting.md).
"""

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from masquerade.training.settings import Averaged, KernelUpdates, Width


class PhaseSettings(KernelUpdates):
    """One of the two trainings."""

    widths: Annotated[list[Width], Field(min_length=1)]
    """Number of channels of the network, with one entry for each halving (autoencoder) or each resolution
    (denoiser)."""


class LdfaSettings(Averaged):
    """The parameters of LDFA."""

    sources = {
        "cooldown": "of each of the two trainings",
    }

    size: Annotated[int, Field(ge=16)]
    """Side in pixels of the images that the networks take."""
    latent: PositiveInt
    """Number of channels of the latent maps (4: Stable Diffusion)."""
    autoencoder: PhaseSettings
    """The training of the autoencoder."""
    denoiser: PhaseSettings
    """The training of the diffusion model."""
    edges: NonNegativeFloat = 0.0
    """Weight of the error of the differences between neighboring pixels, in the loss of the autoencoder."""

    @model_validator(mode="after")
    def _halves(self) -> Self:
        halvings = len(self.autoencoder.widths) + len(self.denoiser.widths) - 1
        if self.size % 2**halvings:
            raise ValueError(f"size is {self.size}; the two networks halve it {halvings} times")
        return self
