"""iFADIT (Yuan et al. 2025): separates identity and attributes, and changes the identity by a flow with a secret.

Its parameters are here. The class is in ``method`` (both without torch), the trained networks are in ``network``, the
frozen ones in ``frozen``, Eq. 11 and the losses (Eq. 12-20) in ``losses``, both phases in ``training``.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from masquerade.core.settings import Channels, Settings, Share, SmallScale
from masquerade.training.settings import Betas, Computed, Updates, Weight

Width = Annotated[int, Field(ge=4)]
Share = Share


class EncoderSettings(Settings):
    """E_Attr of Eq. 1."""

    kind: Literal["psp", "e4e", "inversion"]
    """psp: a separate code for each layer (section 3.2); e4e: one code and offsets to it; inversion: the encoder of the
    inversion as it is, which does not learn (ours)."""
    input_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the encoder's input (256: section 4.1); images are resized to it."""
    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50, the published code)."""
    units: Annotated[list[PositiveInt], Field(min_length=4, max_length=4)]
    """Blocks of the four stages (3, 4, 14, 3: IR-SE-50, the published code)."""


class FlowSettings(Settings):
    """T of Eq. 3."""

    blocks: PositiveInt
    """N, the number of secure affine coupling blocks (4: the published code)."""
    hidden: Annotated[list[Width], Field(min_length=1)]
    """Widths inside a sub-network of a block (256, 128, 128, 256: the published code)."""
    limit: PositiveFloat
    """The constant of a(x) = limit sigmoid(x) in Eq. 5-8 (the paper gives none)."""


class PhaseOneSettings(Updates):
    """Phase I: section 3.5.1."""

    sources = {
        "steps": "both phases together about 150,000: section 4.1",
        "batch": "4: section 4.1",
        "learning_rate": "0.0004: section 4.1",
    }

    structure: Weight
    """alpha, the weight of 1 - SSIM (0.84: Eq. 12)."""
    pixels: Weight
    """beta, the weight of the mean absolute difference of pixels (0.16: Eq. 12)."""
    quality: Weight
    """lambda, the weight of L_VQ (0.01: Eq. 14)."""


class ImageWeights(Settings):
    """The weights of L_Img, Eq. 20 and 21."""

    pixels: Weight
    """lambda_1, the weight of the mean absolute difference of pixels."""
    lpips: Weight
    """lambda_2, the weight of LPIPS by AlexNet; 0 if AlexNet is not available."""
    landmarks: Weight
    """lambda_3, the weight of the mean absolute difference of landmarks, in shares of the image's side."""
    parsing: Weight
    """lambda_4, the weight of the difference of the parser's logits."""


class PhaseTwoSettings(Updates):
    """Phase II: section 3.5.2."""

    sources = {
        "steps": "both phases together about 150,000: section 4.1",
        "learning_rate": "0.0004: section 4.1",
    }

    batch: Annotated[int, Field(ge=2, multiple_of=2)]
    """Images in one update; two share each secret (4: section 4.1)."""
    recovered: ImageWeights
    """lambda of Eq. 21 for faces recovered with the right secret (10, 1, 0.1, 0.01)."""
    altered: ImageWeights
    """lambda of Eq. 21 for faces anonymized, or recovered with a wrong secret (0.01, 0.1, 0.1, 0.01)."""
    alone: PositiveInt
    """Updates of the only phase of a training without ``dual_phase`` (150,000: section 4.1)."""


class RehearsalSettings(SmallScale):
    """Training of T and C on identity vectors, between both phases."""

    steps: NonNegativeInt = 0
    """Updates; 0: no rehearsal."""
    batch: Annotated[int, Field(ge=2, multiple_of=2)] = 64
    """Identity vectors in one update; two share each secret."""
    learning_rate: PositiveFloat = 0.0004
    """Largest learning rate of Adam."""
    spread: Weight = 1.0
    """Weight of the energy distance between changed identities and those of the training images."""


class IfaditSmallScale(SmallScale):
    """How iFADIT differs from the paper at small scales (docs/ifadit.md)."""

    encoder_start: Literal["identity", "inversion"] = "identity"
    """identity: E_Attr's body starts from the body of the identity encoder, if both are alike (Richardson et al. 2021,
    section 4); inversion: from the whole encoder of the inversion, whose statistics stay, with M(z, a) = a."""
    linear: bool = False
    """Whether a is what the encoder adds to the linear codes of the inversion, as there; needs ``encoder_start``
    inversion."""
    span: Annotated[int, Field(ge=0, le=512, multiple_of=2)] = 0
    """Dimensions of the identities: those that the vectors of the training people fill most; 0: all 512. With a span, M
    of Eq. 2 gets directions, without their length."""
    mapping_per_layer: bool = False
    """Whether each style layer has an M of its own (false: one for all, as in the published code; Eq. 2 is silent)."""
    flow_start: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Size of a sub-network's output before training, relative to its input."""
    flow_secret: PositiveFloat = 1.0
    """Factor of the secret vector at the input of a block."""
    flow_aligned: bool = False
    """Whether the flow works along the principal directions of the training identities, with shifts scaled to the
    variation in each; false: on the coordinates as they are."""
    residual_compensation: bool = False
    """Whether the MLP of C starts at 0 and is added to the vector; false: C is the MLP."""
    muon: bool = False
    """Whether Muon updates the convolutions of E_Attr, with Adam for the rest; false: Adam for all."""
    cooldown: Share = 0.0
    """Share of the steps of each phase, at the end, over which the learning rates fall to a fiftieth; 0: they stay."""
    swapped: Share = 0.0
    """Share of a batch of phase I that takes another person's identity; 0: self-reconstruction alone."""
    cycle: Weight = 0.0
    """Weight of the reconstruction of these from the drawn image with their own identity; 0: left out."""
    rehearsal: RehearsalSettings = RehearsalSettings()
    """T and C learn from identity vectors before phase II."""
    pooled_image_terms: bool = False
    """Whether L_Img of the anonymized faces and of the wrongly recovered ones is one mean over both, two thirds of them
    anonymized; false: two means, which are added (Eq. 20)."""
    squared_parsing: bool = False
    """Whether the last term of Eq. 20 is a mean square; false: the Euclidean norm, divided by the root of the number of
    logits."""
    compensation_weight: Weight = 0.0
    """Weight of the squared distance between the result of C and its target; 0: left out (Eq. 22)."""
    refined: bool = False
    """Whether the losses of changed faces see them with the background refined by Eq. 11 and rounded to 8 bits, as
    recovery does; false: refinement at inference alone."""
    overlap: bool = False
    """Whether Eq. 11 takes of the region only what shows it in the drawn image, too, so that a smaller head leaves no
    edge. Only at inference."""


class IfaditSettings(Computed):
    """All parameters of iFADIT."""

    encoder: EncoderSettings
    """E_Attr of Eq. 1."""
    mapping: Width
    """Hidden units of M for each style layer (512: the published code)."""
    flow: FlowSettings
    """T of Eq. 3."""
    compensation_widths: Annotated[list[Width], Field(min_length=3, max_length=3)]
    """Widths inside the identity compensation layer C of Eq. 10 (1024, 2048, 1024: the published code)."""
    phase_one: PhaseOneSettings
    """E_Attr and M learn to separate and to fuse: section 3.5.1."""
    phase_two: PhaseTwoSettings
    """T and C learn to change an identity and to recover it: section 3.5.2."""
    betas: Betas
    """Betas of Adam (0, 0.999: section 4.1)."""
    region: Literal["face", "head"]
    """The part that Eq. 11 takes from the generator: the inside of the face's outline, or the head with hair, ears and
    hat (the paper says "facial mask"). The rest is background."""
    diversity_loss: bool
    """Whether L_Div of Eq. 17 is used (false: Table 5, w/o L_Div)."""
    image_loss: bool
    """Whether L_Img of Eq. 20 is used (false: Table 5, w/o L_Img)."""
    compensation: bool
    """Whether there is an identity compensation layer (false: Table 5, w/o ICL)."""
    dual_phase: bool
    """Whether there are two phases (false: Table 5, w/o DPT, all losses and all parts in one)."""
    samples_every: PositiveInt = 5000
    """Updates between two sample images."""
    small_scale: IfaditSmallScale = IfaditSmallScale()
    """How small scales differ from the paper."""

    @model_validator(mode="after")
    def _inversion_starts_from_itself(self) -> Self:
        small = self.small_scale
        if self.encoder.kind == "inversion" and (small.encoder_start != "inversion" or small.linear):
            raise ValueError(
                "encoder.kind inversion needs small_scale.encoder_start: inversion and small_scale.linear: false"
            )
        return self

    @property
    def lpips(self) -> bool:
        """Whether the losses use LPIPS."""
        weights = self.phase_two.recovered.lpips or self.phase_two.altered.lpips
        return self.image_loss and weights > 0
