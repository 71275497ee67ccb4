"""The parameters that several attackers share."""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Channels, Name, Settings


class RecognitionParams(Settings):
    """How a recogniser learns the method's pictures."""

    start: Name
    """The backbone, a recogniser, from whose architecture and clear weights it starts. It changes a copy."""

    steps: Annotated[int, Field(ge=1)]
    """Batches."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of AdamW; it rises over the first tenth of the steps and falls as a cosine."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Largest learning rate of Muon, for the kernels, with the same rise and fall (0: AdamW for these too)."""
    scale: Annotated[float, Field(gt=0)]
    """s of ArcFace (Deng et al. 2019, Eq. 3)."""
    margin: Annotated[float, Field(ge=0, le=1.5)]
    """m of ArcFace in radians."""


class RestorationParams(Settings):
    """How a network learns to undo a method."""

    widths: Annotated[list[Channels], Field(min_length=2)]
    """Channels of the U-Net at each size, from the finest to the coarsest."""
    steps: Annotated[int, Field(ge=1)]
    """Batches."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of Adam; it rises over the first tenth of the steps and falls as a cosine."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Largest learning rate of Muon, for the kernels (0: Adam for these too)."""
    edges: Annotated[float, Field(ge=0)]
    """Weight of the mean absolute error of neighbouring pixels' differences, beside that of the pixels."""
