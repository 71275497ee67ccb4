"""The knobs of Stage I: widths, losses, optimizer and pairs."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from masquerade.core.settings import Settings
from masquerade.training.settings import AdversarialUpdates, Weight

Width = Annotated[int, Field(ge=4)]


LATENT_STAND_IN = (
    "a mapping between the latent codes of a frozen inversion and of a frozen generator replaces the published networks"
)
"""What `latent` runs in the place of the published Stage I (`Method.latent_stand_in`)."""


class DiscriminatorSettings(Settings):
    """The discriminator of pixels."""

    width: Width
    """Channels after its first convolution; each of the next doubles them, up to 8 times (64: SPADE, appendix A)."""
    depth: Annotated[int, Field(ge=2)]
    """Convolutions before the last one, which gives the scores (4: SPADE, appendix A)."""
    scales: Annotated[int, Field(ge=1)]
    """Discriminators; each takes pictures half the size of the one before (3: FaceShifter; identitydp IV.D: none)."""


class LossSettings(Settings):
    """The weights of Eq. 18."""

    adversarial: Weight
    """Weight of L_adv (1: identitydp, Eq. 18 has no factor; 0.1: cao21, section 5.1)."""
    attributes: Weight
    """lambda_att (10: identitydp, section V.C)."""
    identity: Weight
    """lambda_id (5: identitydp, section V.C)."""
    reconstruction: Weight
    """lambda_rec (10: identitydp, section V.C)."""


class RefinementSettings(Settings):
    """The last updates, against a discriminator of features in the place of that of pixels (ours)."""

    steps: Annotated[int, Field(ge=0)]
    """Updates after the others (0: as published)."""
    rate: Annotated[float, Field(gt=0, le=1)]
    """The learning rates at its start, as a share of those of the other updates."""
    projected: Annotated[int, Field(ge=32, multiple_of=32)]
    """Side in pixels at which EfficientNet-Lite1 sees the pictures (Sauer et al. 2021)."""
    losses: LossSettings
    """The weights of Eq. 18."""
    noised: Annotated[float, Field(ge=0, le=1)]
    """As ``noised`` of the other updates."""


class LatentSettings(Settings):
    """Stage I in the latent space of the frozen generator (ours): r_att is the code of the inversion, and h draws the
    code that a mapping makes of r_id and r_att.
    """

    hidden: Annotated[int, Field(ge=4)]
    """Hidden units of the mapping, which is that of iFADIT (Eq. 2 there): at least two for each number of a style."""


class DisentanglementSettings(AdversarialUpdates):
    """All knobs of Stage I."""

    sources = {
        "steps": "of the generator, each followed by one of the discriminator; the paper gives no number",
        "batch": "here pairs; the paper gives none; 16: FaceShifter re-implementations",
        "learning_rate": "of the generator and the discriminator; 0.0004: identitydp, section V.C",
        "kernel_rate": "of the generator; 0 as published",
        "cooldown": "the generator's; 0 as published; the same share of the steps of the refinement",
        "betas": "0, 0.999: identitydp, section V.C",
        "ema": "0 as the paper",
    }

    encoder_widths: Annotated[list[Width], Field(min_length=2)]
    """Channels after each halving of the attribute encoder. There is one attribute map more than entries, and pictures
    have 2 ** (entries + 1) pixels (7 entries, n = 8, 256 pixels: identitydp, Figure 3 and section V.C)."""
    generator_widths: Annotated[list[Width], Field(min_length=3)]
    """Input channels of the n AAD residual blocks, coarsest first (identitydp, Figure 3)."""
    discriminator: DiscriminatorSettings
    """The discriminator of pixels (identitydp, Eq. 14)."""
    losses: LossSettings
    """The weights of Eq. 18."""
    same_pairs: Annotated[float, Field(ge=0, le=1)]
    """Share of a batch whose identity and attributes come from one picture (identitydp IV.D gives no number)."""
    noised: Annotated[float, Field(ge=0, le=1)]
    """Share of a batch whose identity vector is another person's, moved towards a random direction (ours; 0: the
    paper). With ``same_pairs`` at most 1."""
    span: Annotated[int, Field(ge=0, le=512)]
    """Dimensions that the generator takes of an identity vector: those with the most energy in the vectors of the
    training's people. 0: the whole vector (the paper). An encoder of few people fills few of its 512 dimensions."""
    refinement: RefinementSettings
    """The last updates."""
    latent: LatentSettings | None = None
    """Stage I for photographs, in place of both networks of the paper (null: the paper)."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        shares = {"noised": self.noised}
        if self.refinement.steps:
            shares["refinement.noised"] = self.refinement.noised
        for name, noised in shares.items():
            if self.same_pairs + noised > 1:
                raise ValueError(
                    f"same_pairs {self.same_pairs:g} and {name} {noised:g} are shares of one batch: together at most 1"
                )
        return self

    @property
    def updates(self) -> int:
        """All updates of the generator."""
        return self.steps + self.refinement.steps

    @property
    def size(self) -> int:
        """Side in pixels of the pictures of a network with these widths."""
        return 2 ** (len(self.encoder_widths) + 1)


def latent_stand_in(params: DisentanglementSettings) -> str:
    """`Method.latent_stand_in` of the methods that share Stage I."""
    return "" if params.latent is None else LATENT_STAND_IN


def needed(settings: DisentanglementSettings) -> tuple[str, ...]:
    """The backbones of Stage I, to which a checkpoint belongs."""
    return ("identity",) if settings.latent is None else ("identity", "generator", "inversion")
