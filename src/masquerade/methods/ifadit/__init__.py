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
    """The attribute encoder E_Attr of Eq. 1."""

    kind: Literal["psp", "e4e", "inversion"]
    """psp gives a latent code of its own for each layer (section 3.2); e4e gives one latent code and offsets to it;
    inversion is the frozen encoder of the inversion, which is not trained (ours)."""
    input_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the encoder's input (256: section 4.1); images are resized to it."""
    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Number of channels of the stem and of the four stages (64, 64, 128, 256, 512: IR-SE-50, the published code)."""
    units: Annotated[list[PositiveInt], Field(min_length=4, max_length=4)]
    """Number of blocks of the four stages (3, 4, 14, 3: IR-SE-50, the published code)."""


class FlowSettings(Settings):
    """The flow T of Eq. 3."""

    blocks: PositiveInt
    """N, the number of secure affine coupling blocks (4: the published code)."""
    hidden: Annotated[list[Width], Field(min_length=1)]
    """Number of hidden units of the layers inside a sub-network of a block (256, 128, 128, 256: the published code)."""
    limit: PositiveFloat
    """The constant of a(x) = limit sigmoid(x) in Eq. 5-8 (the paper gives none)."""


class PhaseOneSettings(Updates):
    """Phase I of the training (section 3.5.1)."""

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
    """lambda_3, the weight of the mean absolute difference of landmarks, in sides of the image."""
    parsing: Weight
    """lambda_4, the weight of the difference of the parser's logits."""


class PhaseTwoSettings(Updates):
    """Phase II of the training (section 3.5.2)."""

    sources = {
        "steps": "both phases together about 150,000: section 4.1",
        "learning_rate": "0.0004: section 4.1",
    }

    batch: Annotated[int, Field(ge=2, multiple_of=2)]
    """Number of images in one update; every two of them share a secret (4: section 4.1)."""
    recovered: ImageWeights
    """The weights lambda of Eq. 21 for faces that are recovered with the right secret (10, 1, 0.1, 0.01)."""
    altered: ImageWeights
    """The weights lambda of Eq. 21 for faces that are anonymized, or recovered with a wrong secret (0.01, 0.1, 0.1,
    0.01)."""
    alone: PositiveInt
    """Number of updates of the single phase of a training without ``dual_phase`` (150,000: section 4.1)."""


class RehearsalSettings(SmallScale):
    """A training of the flow T and the compensation C on identity embeddings alone, between both phases (ours). It has
    nothing to do with the rehearsal of a build.
    """

    steps: NonNegativeInt = 0
    """Number of updates; at 0 there is no such training."""
    batch: Annotated[int, Field(ge=2, multiple_of=2)] = 64
    """Number of identity embeddings in one update; every two of them share a secret."""
    learning_rate: PositiveFloat = 0.0004
    """Largest learning rate of Adam."""
    spread: Weight = 1.0
    """Weight of the energy distance between the changed identities and the identities of the training images, which
    keeps the changed ones as diverse."""


class IfaditSmallScale(SmallScale):
    """How iFADIT differs from the paper at small scales (docs/ifadit.md)."""

    encoder_start: Literal["identity", "inversion"] = "identity"
    """Where E_Attr's weights start: identity starts its body from that of the identity encoder, if both have the same
    form (Richardson et al. 2021, section 4); inversion starts it from the whole encoder of the inversion, whose
    statistics stay fixed, with M(z, a) = a."""
    linear: bool = False
    """Whether the encoder predicts corrections to the linear codes of the inversion, as
    `backbones.inversion.small_scale.linear` does. It needs ``encoder_start`` inversion."""
    span: Annotated[int, Field(ge=0, le=512, multiple_of=2)] = 0
    """Number of dimensions of the identity embeddings that are used: those with the most energy in the embeddings of
    the training people; 0 uses all 512. If it is set, M of Eq. 2 receives directions without their length."""
    mapping_per_layer: bool = False
    """Whether each style layer has a mapping M of its own (false: one for all, as in the published code; Eq. 2 does not
    say)."""
    flow_start: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Size of the output of the flow's sub-networks before training, relative to their input."""
    flow_secret: PositiveFloat = 1.0
    """Factor of the secret vector at the input of each block of the flow."""
    flow_aligned: bool = False
    """Whether the flow works along the principal directions of the training identities, with shifts scaled to the
    variation in each; if false, it works on the coordinates as they are."""
    residual_compensation: bool = False
    """Whether the MLP of C is initialized to give 0 and is added to the embedding; if false, C is the MLP."""
    muon: bool = False
    """Whether the optimizer Muon trains the convolutions of E_Attr, with Adam for the rest; if false, Adam trains
    all."""
    cooldown: Share = 0.0
    """Share of the steps, at the end of each phase, over which the learning rates fall to one fiftieth; at 0 they stay
    constant."""
    swapped: Share = 0.0
    """Share of a batch of phase I that gets the identity of another person; at 0 every image is only reconstructed."""
    cycle: Weight = 0.0
    """Weight of the loss with which these swapped images, given their own identity again, must become the original
    images; 0 leaves it out."""
    rehearsal: RehearsalSettings = RehearsalSettings()
    """The training of T and C on identity embeddings that precedes phase II."""
    pooled_image_terms: bool = False
    """Whether L_Img takes one mean over the anonymized and the wrongly recovered faces, two thirds of which are
    anonymized; if false, it adds two means (Eq. 20)."""
    squared_parsing: bool = False
    """Whether the last term of Eq. 20 is a mean square; if false, it is the Euclidean norm divided by the square root
    of the number of logits."""
    compensation_weight: Weight = 0.0
    """Weight of the squared distance between the output of C and its target; 0 leaves it out (Eq. 22)."""
    refined: bool = False
    """Whether the losses on changed faces see the final image, with the background replaced by Eq. 11 and rounded to 8
    bits, as recovery sees it; if false, Eq. 11 is applied only at inference."""
    overlap: bool = False
    """Whether Eq. 11 takes only those pixels of the region that the generated image also shows as part of it, so that a
    smaller head leaves no edge. It matters only at inference."""


class IfaditSettings(Computed):
    """The parameters of iFADIT."""

    encoder: EncoderSettings
    """The attribute encoder E_Attr of Eq. 1."""
    mapping: Width
    """Number of hidden units of the mapping M for each style layer (512: the published code)."""
    flow: FlowSettings
    """The flow T of Eq. 3."""
    compensation_widths: Annotated[list[Width], Field(min_length=3, max_length=3)]
    """Widths inside the identity compensation layer C of Eq. 10 (1024, 2048, 1024: the published code)."""
    phase_one: PhaseOneSettings
    """Phase I, in which E_Attr and M learn to separate and to fuse identity and attributes (section 3.5.1)."""
    phase_two: PhaseTwoSettings
    """Phase II, in which T and C learn to change an identity and to recover it (section 3.5.2)."""
    betas: Betas
    """The two decay rates of Adam (0, 0.999: section 4.1)."""
    region: Literal["face", "head"]
    """The part of the image that Eq. 11 takes from the generator: face is the inside of the outline of the face, and
    head includes hair, ears and hat (the paper says "facial mask"). The rest is background."""
    diversity_loss: bool
    """Whether L_Div of Eq. 17 is used (false: Table 5, w/o L_Div)."""
    image_loss: bool
    """Whether L_Img of Eq. 20 is used (false: Table 5, w/o L_Img)."""
    compensation: bool
    """Whether there is an identity compensation layer (false: Table 5, w/o ICL)."""
    dual_phase: bool
    """Whether there are two phases (false: Table 5, w/o DPT, all losses and all parts in one)."""
    samples_every: PositiveInt = 5000
    """Number of updates between two sample images."""
    small_scale: IfaditSmallScale = IfaditSmallScale()
    """How iFADIT differs from the paper at a small scale."""

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
