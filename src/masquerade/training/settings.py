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
    """How networks compute: the precision of their numbers and the layout of their arrays. The equations are the same
    (docs/cluster.md).
    """

    precision: Literal["float32", "tf32", "bfloat16"]
    """How convolutions and matrix products are computed: float32 in 32 bits, tf32 in NVIDIA's TF32 format on a GPU, and
    bfloat16 in that format, with TF32 for those operations that stay in 32 bits. Sums, the logarithms and exponentials
    of losses, the weights and their updates always have 32 bits."""
    channels_last: bool
    """Whether the feature maps of the trained networks keep the channels of a pixel next to each other in memory, which
    is faster for some convolutions."""

    @property
    def reduced(self) -> bool:
        """Whether it is bfloat16."""
        return self.precision == "bfloat16"


class Computed(Settings):
    """A training of networks."""

    arithmetic: Arithmetic | None = None
    """How the networks of this training compute. If it is null, they compute in 32 bits, except that convolutions on a
    GPU use TF32 if `compute.deterministic` is false."""

    @property
    def mixed(self) -> bool:
        """Whether convolutions and products of matrices are computed with bfloat16."""
        return self.arithmetic is not None and self.arithmetic.reduced


class Updates(Settings):
    """How often, on how many images, and how fast a network is updated."""

    steps: PositiveInt
    """Number of updates of the weights."""
    batch: Annotated[int, Field(ge=2)]
    """Images in one update."""
    learning_rate: PositiveFloat
    """Largest learning rate of Adam."""


class KernelUpdates(Updates):
    """Updates by Muon for the kernels of a network, and by Adam for its other weights."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of the optimizer Muon, which then trains the kernels; at 0 Adam trains them too."""


class KernelSmallScale(SmallScale):
    """The values with which a training by AdamW differs from the paper at a small scale."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of the optimizer Muon, which then trains the kernels; at 0 Adam trains them too, as in the
    papers."""


class RisingUpdates(Updates, Computed):
    """Updates whose rates rise over the first tenth of the steps and fall as a cosine (`compute_warmup_cosine`)."""

    weight_decay: NonNegativeFloat
    """Weight decay of AdamW."""


class Sampled(Computed):
    """A training whose rates fall at the end, and that draws sample images."""

    cooldown: Share = 0.0
    """Share of the steps, at the end of the training, over which the learning rates fall to one fiftieth; at 0 they
    stay constant."""
    samples_every: PositiveInt = 5000
    """Number of updates between two sample images, which show how the training proceeds."""


class Averaged(Sampled):
    """A training that saves the moving average of its weights."""

    ema: Decay = 0.0
    """Decay per update of the moving average of the weights, which is what the checkpoint holds; at 0 it holds the last
    weights."""


class AdversarialUpdates(KernelUpdates, Averaged):
    """The training of a network and of its critic or discriminator, which Adam updates at the same learning rate."""

    betas: Betas
    """The two decay rates, beta 1 and beta 2, of Adam."""


class Published(Settings):
    """A network that an official weight file, or one of weights/, may take the place of."""

    published: str = ""
    """The weight file that replaces the training. An empty text means that the network is trained here;
    ``weights:<name>`` is a file of the folder weights/, and ``asset:<role>`` (see `masquerade assets list`), ``path``
    or ``path#sha256=<checksum>`` is an official file."""


class OwnPublished(Settings):
    """A network that a file of weights/ may take the place of."""

    published: WeightsName = ""
    """The network of the folder weights/ that replaces the training, as ``weights:<name>``. An empty text means that
    the network is trained here."""


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
