"""AnonymousNet (Li and Lin 2019, arXiv:1904.12620): attributes of a face are chosen anew, drawn, and perturbed.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of
StarGAN's published code, with which it draws.
"""

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.settings import Settings, Share, SmallScale
from masquerade.training.settings import AdversarialUpdates, Updates, Weight, Width


class EstimatorSettings(Updates):
    """Stage I: the classifier of attributes. It is ours, in the form of the backbone ``attribute_classifier``."""

    sources = {
        "learning_rate": "here of Muon; Adam has a share of it",
    }

    input_size: Annotated[int, Field(ge=8)]
    """Side in pixels of the classifier's input."""
    widths: Annotated[list[Width], Field(min_length=1)]
    """Number of channels of each stage, which halves the image and has one convolution."""


class GeneratorSettings(Settings):
    """Stage III: the shape of the generator."""

    width: Width
    """Number of channels before the first halving (64)."""
    halvings: PositiveInt
    """Number of halvings of the image (2)."""
    blocks: PositiveInt
    """Number of residual blocks (6)."""


class CriticSettings(Settings):
    """Stage III: the critic."""

    width: Width
    """Number of channels after the first halving (64)."""
    depth: PositiveInt
    """Number of halvings of the image (6)."""
    learning_rate: PositiveFloat
    """Learning rate of Adam for the critic (0.0001)."""


class AnonymousNetSmallScale(SmallScale):
    """How stage III differs from StarGAN's published code at a small scale (docs/other_methods.md)."""

    reach: Annotated[float, Field(ge=0, le=3)] = 0.0
    """Largest change of the artanh of a color value that the network predicts; at 0 the network predicts the image
    itself (published)."""
    scaled: bool = False
    """Whether the attribute label scales and shifts the channels; if false, it is given as constant channels
    (published)."""
    label_steps: NonNegativeInt = 0
    """Number of updates of the critic before the first one of the generator, in which it learns the labels of
    unprotected images alone (0)."""
    critic_kernel_rate: NonNegativeFloat = 0.0
    """Learning rate of the optimizer Muon, which then trains the kernels of the critic (0: Adam trains them too, as
    published)."""
    penalty_every: PositiveInt = 1
    """Number of updates of the critic from one with the gradient penalty to the next; the penalty is then multiplied by
    this number (1)."""


class AnonymousNetLosses(Settings):
    """The weights of the losses of stage III."""

    adversarial: Weight
    """Weight of the Wasserstein loss (1)."""
    gradient_penalty: Weight
    """Weight of the gradient penalty of the critic (10)."""
    classification: Weight
    """Weight of the cross-entropy of the label of a generated image (1)."""
    cycle: Weight
    """Weight of the mean absolute error after the image was changed and then changed back to its own label (10)."""


class AnonymousNetSettings(AdversarialUpdates):
    """The parameters of AnonymousNet."""

    sources = {
        "steps": "of the generator; 40,000: 200,000 of the critic",
        "batch": "16",
        "learning_rate": "of the generator; 0.0001",
        "betas": "0.5, 0.999",
        "kernel_rate": "of the generator; 0 as published",
        "cooldown": "the generator's; 0.5",
    }

    selected: Annotated[list[str], Field(min_length=1)]
    """The attributes that are chosen anew (Black_Hair, Blond_Hair, Brown_Hair, Male, Young)."""
    estimator: EstimatorSettings
    """Stage I, the classifier of attributes."""
    generator: GeneratorSettings
    """Stage III, the generator."""
    critic: CriticSettings
    """Stage III, the critic."""
    losses: AnonymousNetLosses
    """The weights of the losses."""
    critic_updates: PositiveInt
    """Number of updates of the critic before each one of the generator (5)."""
    perturbation: Share
    """Stage IV: largest magnitude of the universal perturbation of an image in [-1, 1] (0.063, 8 of 255: ours)."""
    perturbation_steps: PositiveInt
    """Stage IV: number of updates of the perturbation (ours)."""

    small_scale: AnonymousNetSmallScale = AnonymousNetSmallScale()
    """How stage III differs from the published code at a small scale."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = [name for name in self.selected if name not in ATTRIBUTES]
        if unknown:
            raise ValueError(f"selected has {', '.join(unknown)}; allowed are {', '.join(ATTRIBUTES)}")
        return self
