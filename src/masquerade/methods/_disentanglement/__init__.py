"""Stage I of IdentityDP and Cao et al.: the network that separates identity and attributes of a face and fuses them.

Its parameters (no torch) are here, its networks in ``network``, its losses and training (Eq. 14-18) in ``training``,
for both methods. What a method does to the identity vector (Stage II) is in its own file.
"""

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from masquerade.core.settings import Decay, Settings, Share, SmallScale
from masquerade.training.settings import Betas, Computed, Updates, Weight

Width = Annotated[int, Field(ge=4)]
Share = Share

LATENT_STAND_IN = (
    "a mapping between the latent codes of a frozen inversion and of a frozen generator replaces the published networks"
)
"""What runs in the place of the published Stage I with `latent_hidden` (`Method.latent_stand_in`)."""


class DiscriminatorSettings(Settings):
    """The discriminator of pixels."""

    width: Width
    """Channels after its first convolution; each of the next doubles them, up to 8 times (64: SPADE, appendix A)."""
    depth: Annotated[int, Field(ge=2)]
    """Convolutions before the last one, which gives the scores (4: SPADE, appendix A)."""
    scales: PositiveInt
    """Discriminators; each takes images half the size of the one before (3: FaceShifter; identitydp IV.D: none)."""


class LossWeights(Settings):
    """The weights of Eq. 18."""

    adversarial: Weight
    """Weight of L_adv (1: identitydp, Eq. 18 has no factor; 0.1: cao21, section 5.1)."""
    attributes: Weight
    """lambda_att (10: identitydp, section V.C)."""
    identity: Weight
    """lambda_id (5: identitydp, section V.C)."""
    reconstruction: Weight
    """lambda_rec (10: identitydp, section V.C)."""


class StageOneSmallScale(SmallScale):
    """How Stage I differs from the papers at small scales (docs/identitydp.md)."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of Muon, for the generator's kernels; 0: Adam for these too."""
    cooldown: Share = 0.0
    """Share of the steps, at the end, over which the generator's learning rates fall to a fiftieth; 0: they stay. The
    same share of the steps of the refinement."""
    noised: Share = 0.0
    """Share of a batch whose identity vector is another person's, moved towards a random direction. With ``same_pairs``
    at most 1."""
    span: Annotated[int, Field(ge=0, le=512)] = 0
    """Dimensions that the generator takes of an identity vector: those with the most energy in the vectors of the
    training's people. 0: the whole vector. An encoder of few people fills few of its 512 dimensions."""
    refinement_steps: NonNegativeInt = 0
    """Updates after the others, against a discriminator of features in the place of that of pixels."""
    refinement_size: Annotated[int, Field(ge=32, multiple_of=32)] = 128
    """Side in pixels at which EfficientNet-Lite1 sees the images of the refinement (Sauer et al. 2021)."""
    latent_hidden: NonNegativeInt = 0
    """Hidden units of a mapping between the codes of the frozen inversion and of the frozen generator, which then
    replaces both networks of the paper: at least two for each number of a style; 0: the networks of the paper."""


class DisentanglementSettings(Updates, Computed):
    """All parameters of Stage I."""

    sources = {
        "steps": "of the generator, each followed by one of the discriminator; the paper gives no number",
        "batch": "here pairs; the paper gives none; 16: FaceShifter re-implementations",
        "learning_rate": "of the generator and the discriminator; 0.0004: identitydp, section V.C",
    }

    encoder_widths: Annotated[list[Width], Field(min_length=2)]
    """Channels after each halving of the attribute encoder. There is one attribute map more than entries, and images
    have 2 ** (entries + 1) pixels (7 entries, n = 8, 256 pixels: identitydp, Figure 3 and section V.C)."""
    generator_widths: Annotated[list[Width], Field(min_length=3)]
    """Input channels of the n AAD residual blocks, coarsest first (identitydp, Figure 3)."""
    discriminator: DiscriminatorSettings
    """The discriminator of pixels (identitydp, Eq. 14)."""
    losses: LossWeights
    """The weights of Eq. 18."""
    same_pairs: Share
    """Share of a batch whose identity and attributes come from one image (identitydp IV.D gives no number)."""
    betas: Betas
    """Betas of Adam (0, 0.999: identitydp, section V.C)."""
    ema: Decay
    """Decay of the average of the weights, which is saved; 0: the last weights, as in the paper."""
    samples_every: PositiveInt = 5000
    """Updates between two sample images."""
    small_scale: StageOneSmallScale = StageOneSmallScale()
    """How small scales differ from the papers."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        noised = self.small_scale.noised
        if self.same_pairs + noised > 1:
            raise ValueError(
                f"same_pairs {self.same_pairs:g} and small_scale.noised {noised:g} are shares of one batch: together "
                "at most 1"
            )
        return self

    @property
    def updates(self) -> int:
        """All updates of the generator."""
        return self.steps + self.small_scale.refinement_steps

    @property
    def size(self) -> int:
        """Side in pixels of the images of a network with these widths."""
        return 2 ** (len(self.encoder_widths) + 1)

    @property
    def is_latent(self) -> bool:
        """Whether Stage I works in the latent space of the frozen generator."""
        return self.small_scale.latent_hidden > 0

    @property
    def latent_stand_in(self) -> str:
        """`Method.latent_stand_in` of the methods that share Stage I."""
        return LATENT_STAND_IN if self.is_latent else ""

    @property
    def backbones(self) -> tuple[str, ...]:
        """The backbones of Stage I, to which a checkpoint belongs."""
        return ("identity", "generator", "inversion") if self.is_latent else ("identity",)
