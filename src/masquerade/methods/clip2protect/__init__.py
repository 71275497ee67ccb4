"""CLIP2Protect (Shamshad et al. 2023, arXiv:2306.10008): make-up, described in words, that misleads recognizers.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of the
published code.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from masquerade.core.settings import Settings
from masquerade.training.settings import Weight


class CLIP2ProtectSettings(Settings):
    """The parameters of both stages."""

    targets: PositiveInt
    """Number of target people, sampled from the gallery; each image gets one of them (4: published)."""
    tuning_steps: NonNegativeInt
    """Number of updates with which the generator is tuned to a face (150: published)."""
    tuning_rate: PositiveFloat
    """Learning rate of Adam for these updates (0.0005: published)."""
    search_steps: PositiveInt
    """Number of updates of the latent code (50: published)."""
    search_rate: PositiveFloat
    """Learning rate of Adam for these updates (0.01: published)."""
    first_layer: Annotated[int, Field(ge=0, le=17)]
    """The first style layer that changes, of 18 (8: published)."""
    adversarial: Weight
    """Weight of the identity loss (0.7: published)."""
    text: Weight
    """Weight of the text loss (0.3: published)."""
    latent: Weight
    """Weight of the squared distance to the initial latent code (0.01: published)."""
    temperature: PositiveFloat
    """The temperature tau of the text loss (0.1: published)."""
    source: str
    """The text that describes the image before the change ("face": published)."""
    templates: Annotated[list[str], Field(min_length=1)]
    """Sentences in which $ stands for a text (79 templates: published)."""
    batch: PositiveInt
    """Number of faces that are tuned and searched together. A smaller batch is filled up with its last face (1:
    published code)."""


class CLIP2ProtectVariant(Settings):
    """The goal of the search."""

    goal: Literal["dodge", "impersonate"]
    """dodge moves the face towards the target and away from the person; impersonate moves it towards the target
    alone."""
    prompt: str
    """The make-up in words ("red lipstick": the default of the published program)."""
