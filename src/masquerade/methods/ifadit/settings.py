"""The knobs of iFADIT: networks, losses, phases, and the parts that an ablation leaves out."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from masquerade.core.settings import Channels, Settings
from masquerade.training.settings import Betas, Sampled, Updates, Weight

Width = Annotated[int, Field(ge=4)]
Share = Annotated[float, Field(ge=0, le=1)]


class EncoderSettings(Settings):
    """E_Attr of Eq. 1."""

    kind: Literal["psp", "e4e", "inversion"]
    """psp: a separate code for each layer (section 3.2); e4e: one code and offsets to it; inversion: the encoder of the
    inversion as it is, which does not learn (ours)."""
    linear: bool
    """Whether a is what the encoder adds to the linear codes of the inversion, as there (ours); needs ``start:
    inversion``."""
    input_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the encoder's input (256: section 4.1); pictures are resized to it."""
    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50, the published code)."""
    units: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=4, max_length=4)]
    """Blocks of the four stages (3, 4, 14, 3: IR-SE-50, the published code)."""
    start: Literal["identity", "inversion"]
    """identity: its body starts from the body of the identity encoder, if both are alike (Richardson et al. 2021,
    section 4); inversion: from the whole encoder of the inversion, whose statistics stay, with M(z, a) = a (ours)."""

    @model_validator(mode="after")
    def _inversion_starts_from_itself(self) -> Self:
        if self.kind == "inversion" and (self.start != "inversion" or self.linear):
            raise ValueError("kind inversion needs start: inversion and linear: false")
        return self


class FlowSettings(Settings):
    """T of Eq. 3."""

    blocks: Annotated[int, Field(ge=1)]
    """N, the number of secure affine coupling blocks (4: the published code)."""
    hidden: Annotated[list[Width], Field(min_length=1)]
    """Widths inside a sub-network of a block (256, 128, 128, 256: the published code)."""
    limit: Annotated[float, Field(gt=0)]
    """The constant of a(x) = limit sigmoid(x) in Eq. 5-8 (the paper gives none)."""
    start: Annotated[float, Field(gt=0, le=1)]
    """Size of a sub-network's output before training, relative to its input (the paper gives none)."""
    secret: Annotated[float, Field(gt=0)]
    """Factor of the secret vector at the input of a block (1: Eq. 5-8)."""
    aligned: bool
    """Whether the flow works along the principal directions of the training identities, with shifts scaled to the
    variation in each (ours; false: on the coordinates as they are)."""


class PhaseOneSettings(Updates):
    """Phase I: section 3.5.1."""

    sources = {
        "steps": "both phases together about 150,000: section 4.1",
        "batch": "4: section 4.1",
        "learning_rate": "0.0004: section 4.1",
    }

    optimizer: Literal["adam", "muon"]
    """adam: section 4.1; muon: for the convolutions of E_Attr, with Adam for the rest (ours)."""
    structure: Weight
    """alpha, the weight of 1 - SSIM (0.84: Eq. 12)."""
    pixels: Weight
    """beta, the weight of the mean absolute difference of pixels (0.16: Eq. 12)."""
    quality: Weight
    """lambda, the weight of L_VQ (0.01: Eq. 14)."""
    swapped: Share
    """Share of a batch that takes another person's identity (ours; 0: section 3.5.1, self-reconstruction alone)."""
    cycle: Weight
    """Weight of the reconstruction of these from the drawn picture with their own identity (ours; 0: left out)."""


class ImageWeights(Settings):
    """The weights of L_Img, Eq. 20 and 21."""

    pixels: Weight
    """lambda_1, the weight of the mean absolute difference of pixels."""
    lpips: Weight
    """lambda_2, the weight of LPIPS by AlexNet; 0 if AlexNet is not available."""
    landmarks: Weight
    """lambda_3, the weight of the mean absolute difference of landmarks, in shares of the picture's side."""
    parsing: Weight
    """lambda_4, the weight of the difference of the parser's logits, see ``parsing_norm``."""


class RehearsalSettings(Updates):
    """Training of the flow on identity vectors, before phase II (ours)."""

    steps: Annotated[int, Field(ge=0)]
    """Updates on identity vectors alone, between both phases (ours; 0: none, as the paper)."""
    batch: Annotated[int, Field(ge=2, multiple_of=2)]
    """Identity vectors in one update; two share each secret."""
    noise: Weight
    """Length of another person's vector that is added to a vector of length 1."""
    floor: Annotated[float, Field(gt=0, le=1)]
    """Share of the largest variance of identity vectors; a picture shows half of a direction with this variance."""
    spread: Weight
    """Weight of the energy distance between changed identities and those of the training pictures."""


class PhaseTwoSettings(Updates):
    """Phase II: section 3.5.2."""

    sources = {
        "steps": "both phases together about 150,000: section 4.1",
        "learning_rate": "0.0004: section 4.1",
    }

    batch: Annotated[int, Field(ge=2, multiple_of=2)]
    """Pictures in one update; two share each secret (4: section 4.1)."""
    recovered: ImageWeights
    """lambda of Eq. 21 for faces recovered with the right secret (10, 1, 0.1, 0.01)."""
    altered: ImageWeights
    """lambda of Eq. 21 for faces anonymized, or recovered with a wrong secret (0.01, 0.1, 0.1, 0.01)."""
    image_terms: Literal["each", "pooled"]
    """each: L_Img of the anonymized faces and of the wrongly recovered ones are two means, which are added (Eq. 20);
    pooled: one mean over both, in which two thirds are anonymized (ours)."""
    parsing_norm: Literal["root", "square"]
    """root: the Euclidean norm of Eq. 20, divided by the root of the number of logits; square: its square (ours)."""
    compensation: Weight
    """Weight of the squared distance between the result of the identity compensation layer and its target (ours;
    0: Eq. 22)."""
    alone: Annotated[int, Field(ge=1)]
    """Updates of the only phase of a training without ``dual_phase`` (150,000: section 4.1)."""


class IfaditSettings(Sampled):
    """All knobs of iFADIT."""

    sources = {
        "cooldown": "of each phase; the paper gives none",
    }
    after_training = frozenset({"overlap"})

    encoder: EncoderSettings
    """E_Attr of Eq. 1."""
    span: Annotated[int, Field(ge=0, le=512, multiple_of=2)]
    """Dimensions of the identities: those that the vectors of the training people fill most (ours: docs/ifadit.md; 0:
    all 512, section 3.2). With a span, M of Eq. 2 gets directions, without their length."""
    mapping: Width
    """Hidden units of M for each style layer (512: the published code)."""
    mapping_shared: bool
    """Whether all style layers have the same M (true: the published code; Eq. 2 does not say)."""
    flow: FlowSettings
    """T of Eq. 3."""
    compensation_widths: Annotated[list[Width], Field(min_length=3, max_length=3)]
    """Widths inside the identity compensation layer C of Eq. 10 (1024, 2048, 1024: the published code)."""
    compensation_form: Literal["mlp", "residual"]
    """mlp: C is an MLP (section 3.4, the published code); residual: an MLP that starts at 0 is added to the vector
    (ours)."""
    phase_one: PhaseOneSettings
    """E_Attr and M learn to separate and to fuse: section 3.5.1."""
    rehearsal: RehearsalSettings
    """T and C learn from identity vectors: docs/ifadit.md."""
    phase_two: PhaseTwoSettings
    """T and C learn to change an identity and to recover it: section 3.5.2."""
    betas: Betas
    """Betas of Adam (0, 0.999: section 4.1)."""
    region: Literal["face", "head"]
    """The part that Eq. 11 takes from the generator: the inside of the face's outline, or the head with hair, ears and
    hat (the paper says "facial mask"). The rest is background."""
    overlap: bool
    """Whether Eq. 11 takes of the region what shows it in the drawn picture, too, so that a smaller head leaves no edge
    (ours; false: section 3.4). Only at inference."""
    refined: bool
    """Whether the losses of changed faces take them with the background refined by Eq. 11 and rounded to 8 bits, as
    recovery does (ours; false: section 3.4, refinement at inference alone)."""
    diversity_loss: bool
    """Whether L_Div of Eq. 17 is used (false: Table 5, w/o L_Div)."""
    image_loss: bool
    """Whether L_Img of Eq. 20 is used (false: Table 5, w/o L_Img)."""
    compensation: bool
    """Whether there is an identity compensation layer (false: Table 5, w/o ICL)."""
    dual_phase: bool
    """Whether there are two phases (false: Table 5, w/o DPT, all losses and all parts in one)."""
