"""The knobs that trainings share. A block inherits those that it has; `Settings.sources` names the papers' values."""

from typing import Annotated

from pydantic import Field

from masquerade.core.own_weights import OwnWeights
from masquerade.core.settings import Settings

Weight = Annotated[float, Field(ge=0)]
"""The weight of a loss."""
Betas = tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
"""beta 1 and beta 2 of Adam."""


class Updates(Settings):
    """How often, on how many pictures, and how fast a network is updated."""

    steps: Annotated[int, Field(ge=1)]
    """Updates."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures in one update."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of Adam."""


class KernelUpdates(Updates):
    """Updates by Muon for the kernels of a network, and by Adam for its other weights."""

    kernel_rate: Annotated[float, Field(ge=0)]
    """Largest learning rate of Muon, for the kernels; 0: Adam for these too."""


class RisingUpdates(KernelUpdates):
    """Updates whose rates rise over the first tenth of the steps and fall as a cosine (`warmup_cosine_share`)."""

    weight_decay: Annotated[float, Field(ge=0)]
    """Weight decay of Adam (AdamW)."""


class Sampled(Settings):
    """A training whose rates fall at the end, and that draws sample pictures."""

    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, at the end, over which the learning rates fall to a fiftieth; 0: they stay."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two sample pictures."""


class Averaged(Sampled):
    """A training that saves the moving average of its weights."""

    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay of the average of the weights, which is saved; 0: the last weights."""


class AdversarialUpdates(KernelUpdates, Averaged):
    """The training of a network and of its critic or discriminator, which Adam updates at the same learning rate."""

    betas: Betas
    """Betas of Adam."""


class Published(Settings):
    """A network that an official weight file, or one of weights/, may take the place of."""

    published: str
    """An official weight file to adopt instead of a training: ``asset:<role>`` of `masquerade assets list`, ``path`` or
    ``path#sha256=<checksum>``; ours: ``weights:<name>``; '': trained here."""


class OwnPublished(Settings):
    """A network that a file of weights/ may take the place of."""

    published: OwnWeights
    """Weights to adopt instead of a training: ``weights:<name>``; '': trained here."""
