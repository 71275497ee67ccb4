"""DartBlur (Jiang et al. 2023): a blur on which detectors can be trained as on unprotected images.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of the
published code.
"""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from masquerade.training.settings import Averaged, Betas, Updates

Width = Annotated[int, Field(ge=4)]
HALVINGS = 5  # of the U-Net


class DetectorSettings(Updates):
    """The two face detectors, which are ours; the published ones are RetinaFaces."""

    sources = {
        "steps": "on unprotected images, before the training of the U-Net",
        "learning_rate": "0.0005",
    }

    widths: Annotated[list[Width], Field(min_length=2)]
    """Number of channels after each halving of the image."""


class DartBlurSettings(Updates, Averaged):
    """The parameters of DartBlur."""

    sources = {
        "steps": "of the U-Net, each followed by one of the second detector",
        "batch": "8",
        "learning_rate": "0.0002",
        "cooldown": "the rate of the U-Net",
    }

    widths: Annotated[list[Width], Field(min_length=HALVINGS, max_length=HALVINGS)]
    """Number of channels of the U-Net after each halving (32, 64, 128, 256, 512)."""
    detector: DetectorSettings
    """The two face detectors."""
    budget: NonNegativeFloat
    """Mean distance to the plain blur that costs nothing, in gray levels of 255 (20)."""
    inner_rate: PositiveFloat
    """Learning rate of the inner step of the cyclic loss, through which the loss is differentiated."""
    betas: Betas
    """The two decay rates of Adam (0.5, 0.999)."""
