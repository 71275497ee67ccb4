"""The knobs of FIT's training: widths, losses, optimisers."""

from typing import Annotated

from pydantic import Field

from masquerade.settings import Settings

Width = Annotated[int, Field(ge=4)]
Weight = Annotated[float, Field(ge=0)]


class DiscriminatorSettings(Settings):
    width: Width
    """Channels after its first convolution, doubled by each of the next up to 8 times (64: the published code)."""
    depth: Annotated[int, Field(ge=2)]
    """Convolutions before the one that scores (4, PatchGAN of 70 pixels: the published code)."""
    scales: Annotated[int, Field(ge=1)]
    """Discriminators of one kind of picture, each on pictures half the size of the one before (multi-scale)."""


class ClassifierSettings(Settings):
    width: Width
    """Channels after the first convolution of the password classifier, doubled by each (64: the published code)."""
    depth: Annotated[int, Field(ge=1)]
    """Its convolutions, each of which halves the picture (3: the published code)."""


class LossSettings(Settings):
    adversarial: Weight
    """Weight of L_GAN (1: the published code, as all of these)."""
    password: Weight
    """Weight of L_aux, the password classifier's (1)."""
    identity: Weight
    """Weight of L_adv and L_rec_cls, how the face recogniser names anonymized and recovered faces (2)."""
    feature: Weight
    """Weight of L_feat between one face anonymized with two passwords (2)."""
    wrong_feature: Weight
    """Weight of L_feat between one face recovered with two wrong passwords (1)."""
    between_feature: Weight
    """Weight of L_feat between an anonymized face and the same recovered with a wrong password (1)."""
    pixels: Weight
    """Weight of L_1 between anonymized and original, and of that between wrongly recovered and original (10)."""
    reconstruction: Weight
    """Weight of L_rec, the mean absolute difference between recovered and original (100)."""


class TransformerSettings(Settings):
    width: Width
    """Channels of the transformer before its first halving, doubled by each (64: the published code)."""
    halvings: Annotated[int, Field(ge=1)]
    """How often the transformer halves the picture (2: the published code)."""
    blocks: Annotated[int, Field(ge=1)]
    """Its residual blocks (9: the published code)."""
    reach: Annotated[float, Field(ge=0, le=2)]
    """The largest change of the artanh of a colour, where it draws a change that the inverse password takes back; 0:
    it draws the picture itself (0: the published code)."""
    discriminator: DiscriminatorSettings
    """The networks that tell drawn from real pictures, one for each of: anonymized, recovered, wrongly recovered."""
    classifier: ClassifierSettings
    """The network that names the password from the pictures before and after."""
    losses: LossSettings
    """The weights of the sum of losses."""
    margin: Annotated[float, Field(ge=-1, le=1)]
    """Cosine of two faces up to which they count as two people's (0: torch's CosineEmbeddingLoss, published code)."""
    grey: Annotated[float, Field(ge=0, le=1)]
    """Share of the faces that the identity encoder sees in grey, so that colour alone hides nobody (0: the paper)."""
    steps: Annotated[int, Field(ge=1)]
    """Updates of the transformer, one of the discriminators before each (284,000: 30 epochs of some 0.45 million
    pictures of CASIA-WebFace in batches of 48; the published code)."""
    batch: Annotated[int, Field(ge=2)]
    """Faces in one update, each of which is drawn five times (48: the published code)."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Of Adam (0.0001: the published code)."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Of Adam (0.5, 0.999: the published code)."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Of Muon, for the kernels of the transformer (0: Adam for these too, as published)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps over which the transformer's learning rates fall to a fiftieth (0: never, as published)."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay a step of the average of the weights that is saved (0: the last weights, as published)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two pictures of samples."""
