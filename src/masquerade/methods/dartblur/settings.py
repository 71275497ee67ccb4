"""The knobs of DartBlur. The numbers in brackets are those of the published code."""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings

Width = Annotated[int, Field(ge=4)]
Weight = Annotated[float, Field(ge=0)]
HALVINGS = 5  # of the U-Net


class DetectorSettings(Settings):
    """The detectors. They are ours; the published ones are RetinaFaces."""

    widths: Annotated[list[Width], Field(min_length=2)]
    """Channels after each halving of the picture."""
    steps: Annotated[int, Field(ge=1)]
    """Updates on clear pictures, before the training of the U-Net."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures of one of these updates."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate of Adam (0.0005)."""


class DartBlurLosses(Settings):
    """The weights of the losses."""

    review: Weight
    """Weight of the distance to the plain blur beyond the budget (1)."""
    processing: Weight
    """Weight of the loss of the detector of clear pictures, on the results (1)."""
    post: Weight
    """Weight of the loss of the detector that learns from the results, on the results (1)."""
    cyclic: Weight
    """Weight of the loss of that detector on clear pictures, after one more step on the results (1)."""


class DartBlurSettings(Settings):
    """All knobs of DartBlur."""

    widths: Annotated[list[Width], Field(min_length=HALVINGS, max_length=HALVINGS)]
    """Channels of the U-Net after each halving (32, 64, 128, 256, 512)."""
    detector: DetectorSettings
    """The two detectors."""
    losses: DartBlurLosses
    """The weights of the losses."""
    budget: Annotated[float, Field(ge=0)]
    """Mean distance to the plain blur that costs nothing, in units of 255 (20)."""
    inner_rate: Annotated[float, Field(gt=0)]
    """Learning rate of the differentiated step of the cyclic loss."""
    steps: Annotated[int, Field(ge=1)]
    """Updates of the U-Net, each followed by one of the second detector."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures of one update (8)."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate of Adam (0.0002)."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Betas of Adam (0.5, 0.999)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, at the end, over which the rate of the U-Net falls to a fiftieth."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay of the average of the weights, which is saved (0: the last weights)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two sample pictures."""
