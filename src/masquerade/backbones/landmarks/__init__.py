"""The landmark network (CNN-6), which gives the 68 points of a face: parameters and training.

The architecture and the Wing loss are in training.py; dlib's landmarks are in judges/dlib_face.py.
"""

from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from masquerade.core.settings import Share
from masquerade.training.settings import KernelSmallScale, OwnPublished, RisingUpdates


class LandmarksSettings(OwnPublished, RisingUpdates):
    """The network, its training and its floor."""

    input_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the network's input, to which it resizes images (64: Feng et al. 2018)."""
    widths: Annotated[list[PositiveInt], Field(min_length=1, max_length=7)]
    """Number of channels of each convolution; every convolution halves the image (32, 64, 128, 256, 512: CNN-6)."""
    hidden: PositiveInt
    """Number of units of the hidden layer (1024: CNN-6)."""
    wing_width: PositiveFloat
    """w of the Wing loss in pixels of the input: below w the loss is logarithmic (10: Feng et al. 2018)."""
    wing_epsilon: PositiveFloat
    """epsilon of the Wing loss in pixels: the curvature of the logarithm (2: Feng et al. 2018)."""
    floor_share: Share = 0.95
    """Smallest share of faces whose normalized mean error must be below 8 %. A training that stays below it fails."""
    small_scale: KernelSmallScale = KernelSmallScale()
    """How the training differs from the paper at a small scale."""
