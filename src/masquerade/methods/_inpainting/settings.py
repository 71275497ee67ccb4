"""The knobs that all inpainters share."""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings

Width = Annotated[int, Field(ge=4)]
Weight = Annotated[float, Field(ge=0)]


class LossSettings(Settings):
    """The weights of the losses that all inpainters have."""

    adversarial: Weight
    """Weight of the adversarial loss (1: all published codes)."""
    reconstruction: Weight
    """Weight of the mean absolute error of the drawn region (0: none of the papers has it; ours: docs/inpainting.md).
    The face does not reach the network, so the error teaches what the surroundings predict."""
    edges: Weight
    """Weight of the same error of differences between neighbouring pixels (0: none of the papers has it; ours)."""
    texture: Weight
    """Weight of the same error of local sharpness, `sharpening.texture` (0: none of the papers has it; ours)."""


class InpaintingSettings(Settings):
    """The knobs of the training."""

    steps: Annotated[int, Field(ge=1)]
    """Updates of the generator."""
    critic_from: Annotated[int, Field(ge=0)]
    """Updates of the generator without the critic and without the adversarial loss, before those with both (ours:
    docs/inpainting.md; 0: all published codes)."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures of one update."""
    jitter: Annotated[float, Field(ge=0, le=0.2)]
    """Largest shift of each side of the region while training, as a share of its size."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate of Adam, for the generator and the critic."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Betas of Adam."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Learning rate of Muon, for the kernels of the generator (0: Adam for these too, as published)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, at the end, over which the generator's rates fall to a fiftieth (0: as published)."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay of the average of the weights, which is saved (0: the last weights)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two sample pictures."""
