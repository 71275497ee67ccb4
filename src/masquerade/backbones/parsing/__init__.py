"""The face parser (BiSeNet), which gives each pixel a class: parameters, training and the published weights.

The architecture is in networks/bisenet.py; the names of the classes are in core/annotations.py.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat

from masquerade.core.settings import Channels, Share
from masquerade.training.settings import KernelSmallScale, Published, RisingUpdates


class ParsingSmallScale(KernelSmallScale):
    """How the training of the face parser differs at a small scale."""

    balance: Share = 0.0
    """Exponent b of the class weights: a class with the share s of the pixels has the weight s ** -b, scaled to mean 1
    over the pixels (0: the published code, which weights all classes equally)."""


class ParsingSettings(Published, RisingUpdates):
    """The network, its training and its floors."""

    sources = {
        "published": "79999_iter.pth, or parsing_bisenet.pth: ``asset:bisenet``",
        "steps": "80,000: the published code",
        "batch": "16 on each of two GPUs: the published code",
        "weight_decay": "0.0005: the published code",
    }

    input_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the network's input, to which it resizes images (512: the published code)."""
    width: Channels
    """Number of channels of the stem; all other numbers of channels are multiples of it (64: ResNet-18, the published
    weights)."""
    stride: Literal[2, 4, 8]
    """Number of pixels of the input for each position of the finest features (8: the published weights)."""
    auxiliary: NonNegativeFloat
    """Weight of the losses at 1/8 and 1/16 of the context path (1: Yu et al. 2018, Eq. 2); at 0 these outputs are not
    trained."""
    ohem_probability: Annotated[float, Field(gt=0, le=1)]
    """Online hard example mining: a pixel counts as hard if its true class has less than this probability (0.7: the
    published code). At 1 all pixels count."""
    ohem_share: Share
    """At least this share of the pixels counts as hard (0.0625: the published code)."""
    small_scale: ParsingSmallScale = ParsingSmallScale()
    """How the training differs at a small scale."""
    floor_miou: Share = 0.5
    """Smallest mean intersection over union of the classes that occur. A training that stays below it fails."""
    floor_accuracy: Share = 0.9
    """Smallest share of pixels with the right label. A training that stays below it fails."""
