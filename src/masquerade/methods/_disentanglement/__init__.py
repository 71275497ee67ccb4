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
    """Number of channels after the first convolution; each of the next ones doubles it, up to 8 times (64: SPADE,
    appendix A)."""
    depth: Annotated[int, Field(ge=2)]
    """Number of convolutions before the last one, which gives the scores (4: SPADE, appendix A)."""
    scales: PositiveInt
    """Number of discriminators; each takes images of half the size of the one before (3: FaceShifter; identitydp IV.D
    gives none)."""


class LossWeights(Settings):
    """The weights of Eq. 18."""

    adversarial: Weight
    """Weight of L_adv (1: identitydp, Eq. 18 has no factor; 0.1: cao21, section 5.1)."""
    attributes: Weight
    """lambda_att, the weight of L_att (10: identitydp, section V.C)."""
    identity: Weight
    """lambda_id, the weight of L_id (5: identitydp, section V.C)."""
    reconstruction: Weight
    """lambda_rec, the weight of L_rec (10: identitydp, section V.C)."""


class StageOneSmallScale(SmallScale):
    """How Stage I differs from the papers at small scales (docs/identitydp.md)."""

    kernel_rate: NonNegativeFloat = 0.0
    """Largest learning rate of the optimizer Muon, which then trains the kernels of the generator; at 0 Adam trains
    them too."""
    cooldown: Share = 0.0
    """Share of the steps, at the end of the training and again of its refinement, over which the generator's learning
    rates fall to one fiftieth; at 0 they stay constant."""
    noised: Share = 0.0
    """Share of a batch whose identity embedding is that of another person, moved towards a random direction, because
    anonymization gives embeddings that no real face has. Together with ``same_pairs`` it is at most 1."""
    span: Annotated[int, Field(ge=0, le=512)] = 0
    """Number of dimensions of the identity embedding that the generator receives: those with the most energy in the
    embeddings of the training people; 0 passes the whole embedding. An encoder that was trained on few people uses few
    of its 512 dimensions."""
    refinement_steps: NonNegativeInt = 0
    """Number of further updates at the end, in which a discriminator of features replaces that of pixels."""
    refinement_size: Annotated[int, Field(ge=32, multiple_of=32)] = 128
    """Side in pixels at which EfficientNet-Lite1, whose features that discriminator takes, sees the images (Sauer et
    al. 2021)."""
    latent_hidden: NonNegativeInt = 0
    """Number of hidden units of a network that maps latent codes of the frozen inversion to latent codes of the frozen
    generator, and that then replaces both networks of the paper. It is at least twice the length of a style; 0 trains
    the networks of the paper."""


class DisentanglementSettings(Updates, Computed):
    """All parameters of Stage I."""

    sources = {
        "steps": "of the generator, each followed by one of the discriminator; the paper gives no number",
        "batch": "here pairs; the paper gives none; 16: FaceShifter re-implementations",
        "learning_rate": "of the generator and the discriminator; 0.0004: identitydp, section V.C",
    }

    encoder_widths: Annotated[list[Width], Field(min_length=2)]
    """Number of channels after each halving of the attribute encoder. There is one attribute map more than entries, and
    images have 2 ** (entries + 1) pixels a side (7 entries, n = 8, 256 pixels: identitydp, Figure 3 and section
    V.C)."""
    generator_widths: Annotated[list[Width], Field(min_length=3)]
    """Number of input channels of each of the n AAD residual blocks, the coarsest first (identitydp, Figure 3)."""
    discriminator: DiscriminatorSettings
    """The discriminator of pixels (identitydp, Eq. 14)."""
    losses: LossWeights
    """The weights of Eq. 18."""
    same_pairs: Share
    """Share of a batch in which identity and attributes come from the same image, which the network then has to
    reconstruct (identitydp IV.D gives no number)."""
    betas: Betas
    """The two decay rates of Adam (0, 0.999: identitydp, section V.C)."""
    ema: Decay
    """Decay per update of the moving average of the weights, which is what the checkpoint holds; at 0 it holds the last
    weights, as in the paper."""
    samples_every: PositiveInt = 5000
    """Number of updates between two sample images."""
    small_scale: StageOneSmallScale = StageOneSmallScale()
    """How the training differs from the papers at a small scale."""

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
