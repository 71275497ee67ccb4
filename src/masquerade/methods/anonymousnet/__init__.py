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
    """Stage I: the classifier of attributes. Ours; it has the form of the backbone ``attribute_classifier``."""

    sources = {
        "learning_rate": "here of Muon; Adam has a share of it",
    }

    input_size: Annotated[int, Field(ge=8)]
    """Side in pixels of its input."""
    widths: Annotated[list[Width], Field(min_length=1)]
    """Channels of its stages, which each halve the image and have one convolution."""


class GeneratorSettings(Settings):
    """Stage III: the shape of the generator."""

    width: Width
    """Channels before the first halving (64)."""
    halvings: PositiveInt
    """Halvings of the image (2)."""
    blocks: PositiveInt
    """Residual blocks (6)."""


class CriticSettings(Settings):
    """Stage III: the critic."""

    width: Width
    """Channels after its first halving (64)."""
    depth: PositiveInt
    """Halvings of the image (6)."""
    learning_rate: PositiveFloat
    """Learning rate of its Adam (0.0001)."""


class AnonymousNetSmallScale(SmallScale):
    """How stage III differs from StarGAN's published code at a small scale: docs/other_methods.md."""

    reach: Annotated[float, Field(ge=0, le=3)] = 0.0
    """Largest change of the artanh of a color. 0: the network draws the image itself (published)."""
    scaled: bool = False
    """Whether the label scales and shifts channels. False: it is given as constant channels (published)."""
    label_steps: NonNegativeInt = 0
    """Updates before the first of the generator, in which it learns the labels of real images alone (0)."""
    critic_kernel_rate: NonNegativeFloat = 0.0
    """Learning rate of Muon, for the kernels of the critic (0: Adam for these too, as published)."""
    penalty_every: PositiveInt = 1
    """Updates of the critic between two with the gradient penalty, which then counts as often (1)."""


class AnonymousNetLosses(Settings):
    """The weights of the losses of stage III."""

    adversarial: Weight
    """Weight of the Wasserstein loss (1)."""
    gradient_penalty: Weight
    """Weight of the gradient penalty of the critic (10)."""
    classification: Weight
    """Weight of the cross-entropy of the label of a drawn image (1)."""
    cycle: Weight
    """Weight of the mean absolute error after drawing the own label again (10)."""


class AnonymousNetSettings(AdversarialUpdates):
    """All knobs of AnonymousNet."""

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
    """Stage I."""
    generator: GeneratorSettings
    """Stage III."""
    critic: CriticSettings
    """Stage III."""
    losses: AnonymousNetLosses
    """The weights of the losses."""
    critic_updates: PositiveInt
    """Updates of the critic before one of the generator (5)."""
    perturbation: Share
    """Stage IV: largest magnitude of the universal perturbation, in [-1, 1] (0.063, 8 of 255: ours)."""
    perturbation_steps: PositiveInt
    """Stage IV: updates of the perturbation (ours)."""

    small_scale: AnonymousNetSmallScale = AnonymousNetSmallScale()
    """What differs from the published code at a small scale."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = [name for name in self.selected if name not in ATTRIBUTES]
        if unknown:
            raise ValueError(f"selected has {', '.join(unknown)}; allowed are {', '.join(ATTRIBUTES)}")
        return self
