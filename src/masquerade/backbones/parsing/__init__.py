"""The face parser (BiSeNet), which gives each pixel a class: parameters, training and the published weights.

The architecture is in networks/bisenet.py; the names of the classes are in core/annotations.py.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat

from masquerade.core.settings import Channels, Share
from masquerade.training.settings import KernelSmallScale, Published, RisingUpdates


class ParsingSmallScale(KernelSmallScale):
    """What small scales change."""

    balance: Share = 0.0
    """Weight of a class = (its share of the pixels) ** -balance, mean 1 over pixels (0: the published code)."""


class ParsingSettings(Published, RisingUpdates):
    """The network, its training and its floors."""

    sources = {
        "published": "79999_iter.pth, or parsing_bisenet.pth: ``asset:bisenet``",
        "steps": "80,000: the published code",
        "batch": "16 on each of two GPUs: the published code",
        "weight_decay": "0.0005: the published code",
    }

    input_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the network's input; the network resizes images to it (512: the published code)."""
    width: Channels
    """Channels of the stem; all others are multiples of it (64: ResNet-18, the published weights)."""
    stride: Literal[2, 4, 8]
    """Pixels of the input per position of the finest features (8: the published weights)."""
    auxiliary: NonNegativeFloat
    """Weight of the losses at 1/8 and 1/16 of the context path (1: Yu et al. 2018, Eq. 2); 0: not trained."""
    ohem_probability: Annotated[float, Field(gt=0, le=1)]
    """A pixel is hard below this probability of its true class (0.7: the published code); 1: all pixels count."""
    ohem_share: Share
    """At least this share of the pixels counts as hard (0.0625: the published code)."""
    small_scale: ParsingSmallScale = ParsingSmallScale()
    """What small scales change."""
    floor_miou: Share = 0.5
    """Smallest mean intersection over union of the classes that occur; below it the run stops."""
    floor_accuracy: Share = 0.9
    """Smallest share of pixels with the right label; below it the run stops."""
