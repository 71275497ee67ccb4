"""The parameters that several attackers share."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from masquerade.core.settings import Channels, Name
from masquerade.training.settings import Computed, KernelUpdates


class RecognitionParams(KernelUpdates, Computed):
    """How a recognizer learns the method's images."""

    start: Name
    """The backbone, a recognizer, from whose architecture and clear weights it starts. It changes a copy."""

    scale: PositiveFloat
    """s of ArcFace (Deng et al. 2019, Eq. 3)."""
    margin: Annotated[float, Field(ge=0, le=1.5)]
    """m of ArcFace in radians."""


class RestorationParams(KernelUpdates, Computed):
    """How a network learns to undo a method."""

    widths: Annotated[list[Channels], Field(min_length=2)]
    """Channels of the U-Net at each size, from the finest to the coarsest."""
    edges: NonNegativeFloat = 1.0
    """Weight of the mean absolute error of neighboring pixels' differences, beside that of the pixels."""
