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
    """lambda of each loss of the encoder's training (Tov et al. 2021, section 4 and appendix A)."""

    pixels: NonNegativeFloat
    """Weight of the mean squared difference of the pixels (1: Tov et al. 2021, appendix A)."""
    lpips: NonNegativeFloat
    """Weight of LPIPS by AlexNet (0.8: appendix A); 0 if AlexNet is not available."""
    identity: NonNegativeFloat
    """Weight of 1 - cosine of the identity vectors (0.1: appendix A)."""
    offsets: NonNegativeFloat
    """Weight of the squared length of the offsets between the codes of the layers (0.0002: appendix A)."""
    adversarial: NonNegativeFloat
    """Weight of the discriminator between codes and W (0.1: appendix A)."""


class CodeDiscriminatorSettings(Settings):
    """The discriminator between codes and W, and its Adam."""

    layers: PositiveInt
    """Hidden layers (3: e4e's published code)."""
    equalized: bool
    """Whether the layers have an equalized learning rate and StyleGAN2's gain (false: e4e's published code)."""
    learning_rate: PositiveFloat
    """Learning rate, constant (0.00002: e4e's published code)."""
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)]
    """Decay of the means of the gradient and of its square (0.9, 0.999, Adam's defaults: e4e's published code)."""


class PairSettings(Settings):
    """Drawn images with known codes, from which the kind ``mobile`` learns."""

    count: NonNegativeInt
    """Images, drawn once before the first step (0: none; ours)."""
    batch: PositiveInt
    """Pairs in a batch; they are made worse as photographs are: compression, blur, grain, small shifts."""
    pictures_every: PositiveInt
    """Steps from one with ``batch`` images of the faces, whose codes are unknown, to the next. Such a step draws them
    and takes much longer."""


class RefinementSettings(Settings):
    """The optimization of the codes that the encoder of the kind ``mobile`` gives, for each face (ours)."""

    steps: NonNegativeInt
    """Steps; 0: none. One takes 0.3 seconds of a processor's core at 256 pixels."""
    learning_rate: PositiveFloat
    """Largest learning rate of Adam on W+, whose numbers have a deviation of 0.5; it falls to a fifth."""
    pixels: NonNegativeFloat
    """Weight of the mean squared difference of the pixels."""
    coarse: NonNegativeFloat
    """Weight of the same of means over 8 x 8 pixels."""
    perceptual: NonNegativeFloat
    """Weight of LPIPS by AlexNet."""
    prior: NonNegativeFloat
    """Weight of the mean squared coordinates in P_N space, 1 for random faces (Zhu et al. 2020)."""


class InversionSmallScale(SmallScale):
    """What small scales change, and the kind ``mobile``, which is ours."""

    linear: bool = False
    """Whether the encoder learns what to add to the linear codes that the generator learned to decode, and not to the
    mean of W. It then starts as a good inversion. The generator must have been trained by reconstruction."""
    optimizer: Literal["adam", "muon"] = "adam"
    """muon: for the weights of convolutions, with Adam for the rest; it needs fewer images."""
    parts: NonNegativeFloat = 0.0
    """Extra weight of a pixel of brows, eyes, nose and mouth in the absolute differences, as for the generator."""
    absolute: NonNegativeFloat = 0.0
    """Weight of the mean absolute difference of the pixels, weighted by ``parts``."""
    edges: NonNegativeFloat = 0.0
    """Weight of the same of the steps from pixel to pixel."""
    texture: NonNegativeFloat = 0.0
    """Weight of the difference of local sharpness, as in the generator's training."""
    codes: NonNegativeFloat = 0.0
    """Weight of the mean squared error of the codes of generated images, which are known. For the kind ``mobile`` it
    is the error of the styles that the codes give."""


class InversionSettings(Published, Updates, Computed):
    """The encoder, its training and its floors."""

    after_training = frozenset({"refinement"})
    sources = {
        "published": "e4e or pSp",
        "learning_rate": "or of Muon; it falls over the last 40 % of the steps; 0.0001 and constant: appendix A",
    }

    kind: Literal["e4e", "psp", "mobile"]
    """e4e: one code and offsets to it; psp: a code of its own for each layer; mobile: MobileNetV2 from ImageNet, which
    learns from ``pairs`` (ours; for the generator of random-face). It has no ``linear``, ``widths`` and ``units``."""
    input_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the encoder's input (256: Tov et al. 2021); the encoder resizes images to it."""
    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
    units: Annotated[list[int], Field(min_length=4, max_length=4)]
    """Blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
    batch: PositiveInt
    """Real images in a batch (8: Tov et al. 2021, appendix A)."""
    offsets_from: NonNegativeInt
    """The step from which the first offset is trained (20000: appendix A); before it all layers have one code."""
    offsets_every: PositiveInt
    """Steps between the starts of two offsets (2000: appendix A)."""
    weights: InversionWeights
    """lambda of each loss."""
    code_discriminator: CodeDiscriminatorSettings
    """Trained if ``weights.adversarial`` is not 0."""
    pairs: PairSettings | None = None
    """What the kind ``mobile`` learns from; null for the other kinds, as the next."""
    refinement: RefinementSettings | None = None
    """What follows the encoder."""
    samples_every: PositiveInt = 5000
    """Steps between sample images."""
    small_scale: InversionSmallScale = InversionSmallScale()
    """What small scales change."""
    floor_identity: Annotated[float, Field(ge=-1, le=1)] = 0.5
    """Smallest mean cosine of identity vectors of faces and their reconstructions; below it the run stops."""
    floor_psnr: NonNegativeFloat = 18.0
    """Smallest mean PSNR of the reconstructions in dB; below it the run stops."""

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
