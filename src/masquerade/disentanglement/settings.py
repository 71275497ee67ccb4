"""The knobs of Stage I: widths, losses, optimiser, pairs."""

from typing import Annotated, Literal

from pydantic import Field

from masquerade.settings import Settings

Width = Annotated[int, Field(ge=4)]
Weight = Annotated[float, Field(ge=0)]


class DiscriminatorSettings(Settings):
    width: Width
    """Channels after its first convolution, doubled by each of the next up to 8 times (64: SPADE, appendix A)."""
    depth: Annotated[int, Field(ge=2)]
    """Convolutions before the one that scores (4: SPADE, appendix A)."""
    scales: Annotated[int, Field(ge=1)]
    """Discriminators, each on pictures half the size of the one before (3: FaceShifter; identitydp IV.D gives none)."""


class LossSettings(Settings):
    adversarial: Weight
    """Weight of L_adv (1: identitydp, Eq. 18 has no factor; 0.1: cao21, section 5.1)."""
    attributes: Weight
    """lambda_att (10: identitydp, section V.C)."""
    identity: Weight
    """lambda_id (5: identitydp, section V.C)."""
    reconstruction: Weight
    """lambda_rec (10: identitydp, section V.C)."""


class DisentanglementSettings(Settings):
    encoder_widths: Annotated[list[Width], Field(min_length=2)]
    """Channels after each halving of the attribute encoder; one attribute map more than entries, and pictures of
    2 ** (entries + 1) pixels (7 entries, n = 8, 256 pixels: identitydp, Figure 3 and section V.C)."""
    generator_widths: Annotated[list[Width], Field(min_length=3)]
    """Input channels of the n AAD residual blocks, coarsest first (identitydp, Figure 3)."""
    discriminator: DiscriminatorSettings
    """The networks that tell drawn from real pictures (identitydp, Eq. 14)."""
    losses: LossSettings
    """The weights of Eq. 18."""
    squares: Literal["means", "sums"]
    """What the squared norms of Eq. 16 and 17 are over their elements (sums: as printed; means: docs/identitydp.md)."""
    steps: Annotated[int, Field(ge=1)]
    """Updates of the generator, one of the discriminator after each (the paper gives no number)."""
    batch: Annotated[int, Field(ge=2)]
    """Pairs in one update (the paper gives none; 16: FaceShifter re-implementations)."""
    same_pairs: Annotated[float, Field(ge=0, le=1)]
    """Share of a batch whose identity and attributes come from one picture (identitydp IV.D gives no number)."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Of Adam, for the generator and the discriminator (0.0004: identitydp, section V.C)."""
    kernel_rate: Annotated[float, Field(ge=0)]
    """Of Muon, for the generator's kernels (0: Adam for these too, as published)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps over which the generator's rates fall to a fiftieth (0: never, as published)."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Of Adam (0, 0.999: identitydp, section V.C)."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay a step of the average of the weights that is saved (0: the last weights, as the paper)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two pictures of samples."""

    @property
    def size(self) -> int:
        """Side in pixels of the pictures that a network of these widths takes and makes."""
        return 2 ** (len(self.encoder_widths) + 1)
