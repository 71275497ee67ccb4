"""What a training is given: its job, and the parameters that trainings share.

A block of parameters inherits those that it has; `Settings.sources` names the papers' values. This module imports no
torch, because planning reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from masquerade.core.settings import Decay, Settings, Share, SmallScale
from masquerade.core.weight_names import WeightsName

Weight = NonNegativeFloat
"""The weight of a loss."""
Width = Annotated[int, Field(ge=4)]
"""The channels of a layer."""
Betas = tuple[Decay, Decay]
"""beta 1 and beta 2 of Adam."""


class Arithmetic(Settings):
    """How networks compute. The equations are the same (docs/cluster.md)."""

    precision: Literal["float32", "tf32", "bfloat16"]
    """Of convolutions and products of matrices: 32 bits, TF32 (GPUs), or bfloat16, and TF32 for those that stay in 32
    bits. Sums, losses' logarithms and exponentials, weights and their updates have 32 bits."""
    channels_last: bool
    """Whether the maps of the trained networks have the channels of a pixel side by side in memory."""

    @property
    def reduced(self) -> bool:
        """Whether it is bfloat16."""
        return self.precision == "bfloat16"


class Computed(Settings):
    """A training of networks."""

    arithmetic: Arithmetic | None = None
    """How its networks compute; null: in 32 bits, and convolutions in TF32 on a GPU without `compute.deterministic`."""

    @property
    def mixed(self) -> bool:
        """Whether convolutions and products of matrices are computed with bfloat16."""
        return self.arithmetic is not None and self.arithmetic.reduced


class Updates(Settings):
    """How often, on how many images, and how fast a network is updated."""

    steps: PositiveInt
    """Updates."""
    batch: Annotated[int, Field(ge=2)]
    """Images in one update."""
    learning_rate: PositiveFloat
    """Largest learning rate of Adam."""


class KernelUpdates(Updates):
    """Updates by Muon for the kernels of a network, and by Adam for its other weights."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of Muon, for the kernels; 0: Adam for these too."""


class KernelSmallScale(SmallScale):
    """What small scales change in a training by AdamW."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of Muon, for the kernels; 0: Adam for these too, as in the papers."""


class RisingUpdates(Updates, Computed):
    """Updates whose rates rise over the first tenth of the steps and fall as a cosine (`compute_warmup_cosine`)."""

    weight_decay: NonNegativeFloat
    """Weight decay of Adam (AdamW)."""


class Sampled(Computed):
    """A training whose rates fall at the end, and that draws sample images."""

    cooldown: Share = 0.0
    """Share of the steps, at the end, over which the learning rates fall to a fiftieth; 0: they stay."""
    samples_every: PositiveInt = 5000
    """Updates between two sample images."""


class Averaged(Sampled):
    """A training that saves the moving average of its weights."""

    ema: Decay = 0.0
    """Decay of the average of the weights, which is saved; 0: the last weights."""


class AdversarialUpdates(KernelUpdates, Averaged):
    """The training of a network and of its critic or discriminator, which Adam updates at the same learning rate."""

    betas: Betas
    """Betas of Adam."""


class Published(Settings):
    """A network that an official weight file, or one of weights/, may take the place of."""

    published: str = ""
    """An official weight file to adopt instead of a training: ``asset:<role>`` of `masquerade assets list`, ``path`` or
    ``path#sha256=<checksum>``; ours: ``weights:<name>``; '': trained here."""


class OwnPublished(Settings):
    """A network that a file of weights/ may take the place of."""

    published: WeightsName = ""
    """Weights to adopt instead of a training: ``weights:<name>``; '': trained here."""


@dataclass(frozen=True)
class TrainingJob:
    """One training: faces in, checkpoint out. Small and stateless, so that a cluster can requeue it."""

    faces: Path
    """The archive of faces."""
    backbones: Mapping[str, Path]
    """Name of each backbone that is needed -> its checkpoint."""
    checkpoint: Path
    """The file to write."""
    state: Path
    """The state of the unfinished training, from which the loop resumes after an interruption."""
    seed: int
    threads: int
    """CPU threads."""
    log: Callable[[int, Mapping[str, float]], None]
    """``log(step, {name: value})`` records the curves."""
    picture: Callable[[str, np.ndarray], None]
    """``picture(name, uint8 (H, W, 3))`` records a sample."""
    base: Path | None = None
    """A checkpoint whose parts need not be trained again, if both trainings have them in common: for an ablation, that
    of the method without it; otherwise that of a related method.
    """
    _: KW_ONLY
    people: str
    """The part of the faces that it learns from: a group of people (core/people.py), or a split."""
