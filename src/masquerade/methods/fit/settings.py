"""The knobs of FIT: widths, losses and optimizers."""

from typing import Annotated, Literal

from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.training.settings import AdversarialUpdates, Weight

Width = Annotated[int, Field(ge=4)]


class DiscriminatorSettings(Settings):
    """Widths of a discriminator."""

    width: Width
    """Channels after its first convolution; each of the next doubles them, up to 8 times (64: the published code)."""
    depth: Annotated[int, Field(ge=2)]
    """Convolutions before the last one, which gives the scores (4, PatchGAN of 70 pixels: the published code)."""
    scales: Annotated[int, Field(ge=1)]
    """Discriminators of one kind of picture; each takes pictures half the size of the one before (2: the published
    code)."""
    shared: bool
    """Whether the three kinds of pictures share the discriminators of all scales but the finest (true: the published
    code)."""


class ClassifierSettings(Settings):
    """Widths of the password classifier."""

    width: Width
    """Channels after its first convolution; each of the next doubles them, up to 8 times (64: the published code)."""
    depth: Annotated[int, Field(ge=1)]
    """Its convolutions; each halves the picture (5: the published code)."""
    last_stride: Literal[2, 4]
    """2: the last convolution halves the picture, too; 4: it takes blocks of 4 x 4 numbers (the published code)."""
    first_norm: bool
    """Whether the first convolution is normalized (false: the published code)."""


class LossSettings(Settings):
    """The weights of the losses; the numbers in brackets are those of the published code."""

    adversarial: Weight
    """Weight of L_GAN (1)."""
    password: Weight
    """Weight of L_aux, the loss of the password classifier (1)."""
    identity: Weight
    """Weight of L_adv and L_rec_cls (2): anonymized and wrongly recovered faces should be other people, and recovered
    faces the same person."""
    feature: Weight
    """Weight of L_feat between two faces that are one face anonymized with two passwords (2)."""
    wrong_feature: Weight
    """Weight of L_feat between two faces that are one face recovered with two wrong passwords (1)."""
    between_feature: Weight
    """Weight of L_feat between an anonymized face and the face recovered from it with a wrong password (1)."""
    pixels: Weight
    """Weight of L_1 between anonymized and original, and between wrongly recovered and original (10)."""
    reconstruction: Weight
    """Weight of L_rec, the mean absolute difference between recovered and original (100)."""


class FitSettings(AdversarialUpdates):
    """All knobs of FIT."""

    sources = {
        "steps": "each after one of the discriminators; 284,000: 30 epochs of CASIA-WebFace, the published code",
        "batch": "each is drawn five times; 48: the published code",
        "learning_rate": "0.0001: the published code",
        "betas": "0.5, 0.999: the published code",
        "kernel_rate": "of the transformer; 0 as published",
        "cooldown": "of the transformer; 0 as published",
        "ema": "0 as published",
    }

    width: Width
    """Channels of the transformer before its first halving; each halving doubles them (64: the published code)."""
    halvings: Annotated[int, Field(ge=1)]
    """How often the transformer halves the picture (2: the published code)."""
    blocks: Annotated[int, Field(ge=1)]
    """Its residual blocks (9: the published code)."""
    reach: Annotated[float, Field(ge=0, le=2)]
    """The largest change of the artanh of a color, if the network draws a change that the inverse password undoes.
    0: the network draws the picture itself (the published code)."""
    discriminator: DiscriminatorSettings
    """The discriminators, one for each kind of picture: anonymized, recovered, wrongly recovered."""
    classifier: ClassifierSettings
    """The network that predicts the password from the picture before and the picture after."""
    losses: LossSettings
    """The weights of the losses."""
    margin: Annotated[float, Field(ge=-1, le=1)]
    """Largest cosine of two faces that count as different people (0: torch's CosineEmbeddingLoss, published code)."""
    identity_of: Literal["first", "both"]
    """first: of two hidden and two wrongly recovered faces only the first of each is in ``losses.identity`` (the
    published code); both: all four (ours)."""
    gray: Annotated[float, Field(ge=0, le=1)]
    """Share of the faces that the identity encoder takes in gray, so that color alone cannot hide (0: the paper)."""
