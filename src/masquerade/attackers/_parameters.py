"""The parameters that several attackers share."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from masquerade.core.settings import Channels, Name
from masquerade.training.settings import Computed, KernelUpdates


class RecognitionParams(KernelUpdates, Computed):
    """How a recognizer learns the method's images."""

    start: Name
    """The recognizer among the backbones whose architecture and weights, trained on unprotected faces, the attacker
    starts from. It trains a copy."""

    scale: PositiveFloat
    """The scale s of ArcFace's logits (Deng et al. 2019, Eq. 3)."""
    margin: Annotated[float, Field(ge=0, le=1.5)]
    """The additive angular margin m of ArcFace in radians."""


class RestorationParams(KernelUpdates, Computed):
    """How a network learns to undo a method."""

    widths: Annotated[list[Channels], Field(min_length=2)]
    """Number of channels of the U-Net at each resolution, from the finest to the coarsest."""
    edges: NonNegativeFloat = 1.0
    """Weight of the mean absolute error of the differences between neighboring pixels, beside that of the pixels."""
