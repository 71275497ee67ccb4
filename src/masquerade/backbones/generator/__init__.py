"""The generator StyleGAN2: its parameters, three training phases, and the published layouts that it can adopt.

The architecture is in networks/stylegan2.py; the fakes that it generates for FALCO are in methods/latent/.
"""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from masquerade.core.settings import Decay, Settings, Share, SmallScale
from masquerade.core.weight_names import WeightsName
from masquerade.training.settings import Computed, Published, Updates


class ReconstructionSettings(SmallScale):
    """A phase before that of the paper, which is ours: it learns to decode the principal components of the training
    images into these images.
    """

    steps: NonNegativeInt = 0
    """Number of updates; at 0 there is no such phase, as in the papers."""
    batch: PositiveInt = 8
    """Number of images in one update."""
    modulation: PositiveFloat = 1.0
    """Initial factor of the modulation of the convolutions (1: StyleGAN2). With a small factor the effect of a latent
    code on the image is almost linear, like that of the principal components."""
    critic: NonNegativeFloat = 0.0
    """Weight of a discriminator between W and the principal components, in the training of the mapping network; at 0
    only the energy distance compares them."""


class SharpeningSettings(SmallScale):
    """A phase after the reconstruction, which is ours: decoding continues, and a discriminator and a measure of texture
    prevent blur.
    """

    steps: NonNegativeInt = 0
    """Number of updates; at 0 there is no such phase."""
    batch: Annotated[int, Field(ge=2)] = 16
    """Number of training images in one update, and of random faces beside them."""
    kernel_rate: PositiveFloat = 0.01
    """Largest learning rate of Muon, for the weights of convolutions and modulations."""
    texture: NonNegativeFloat = 1.5
    """Weight of the difference in local sharpness, which is the mean magnitude of the Laplacian around a pixel."""
    samples: NonNegativeFloat = 0.02
    """Weight of the adversarial loss on random faces."""
    projected: Annotated[int, Field(ge=32, multiple_of=32)] = 256
    """Side in pixels at which the discriminator, which works on features of EfficientNet-Lite1, sees the images (256:
    Sauer et al. 2021)."""
    discriminator_rate: PositiveFloat = 0.002
    """Learning rate of Adam for the discriminator."""


class GeneratorSmallScale(SmallScale):
    """Two phases of training that replace the training of the paper at a small scale, or precede it."""

    reconstruction: ReconstructionSettings = ReconstructionSettings()
    """The first phase, which reconstructs the training images."""
    sharpening: SharpeningSettings = SharpeningSettings()
    """The second phase, which makes the generated images sharper."""


class AdversarialSettings(Updates):
    """The training of StyleGAN2 (Karras et al. 2020, appendix B)."""

    sources = {
        "batch": "32: Karras et al. 2020, appendix B",
        "learning_rate": "beta 0 and 0.99, for both networks; 0.002: Karras et al. 2020, appendix B",
    }

    steps: NonNegativeInt
    """Number of updates; at 0 there is no such phase (781,250 with 32 images each: Karras et al. 2020, appendix B)."""
    r1: NonNegativeFloat
    """gamma, the weight of the R1 penalty of the discriminator (10: Karras et al. 2020, appendix B)."""
    r1_every: PositiveInt
    """Number of steps from one R1 penalty to the next (16: Karras et al. 2020, section 3.1)."""
    path_length: NonNegativeFloat
    """Weight of the path length penalty (2: Karras et al. 2020, appendix B)."""
    path_length_every: PositiveInt
    """Number of steps from one path length penalty to the next (8: Karras et al. 2020, section 3.1)."""
    mixing: Share
    """Share of the images that are generated from two latent codes (style mixing; 0.9: Karras et al. 2019, section
    3.1)."""


class HeadSettings(Settings):
    """The output head for 256 pixels of the published generator `package:random-face`."""

    published: WeightsName = ""
    """The network of weights/ that replaces the training, such as ``weights:photo/generator``. An empty text means that
    the head is trained here."""
    pictures: Annotated[int, Field(ge=64)]
    """Number of generated images from which the head learns."""
    steps: PositiveInt
    """Number of updates of the head."""


class GeneratorSettings(Published, Computed):
    """The network, the phases of its training, and its floor."""

    sources = {
        "published": "of rosinality or GenForce, or package:random-face, faces like photographs (docs/scale_photo.md)",
        "arithmetic": "bfloat16: of the first two phases alone; 0.6 of the time on a recent CPU",
    }

    channels: Annotated[list[int], Field(min_length=2, max_length=9)]
    """Number of channels at 4, 8, 16, ... pixels. The length of the list determines the size of the images (9 entries
    for 1024 pixels: config F of Karras et al. 2020)."""
    style: PositiveInt
    """Number of dimensions of Z and W (512: Karras et al. 2019)."""
    mapping: PositiveInt
    """Number of layers of the mapping network (8: Karras et al. 2019)."""
    mapping_rate: PositiveFloat
    """Learning rate of the mapping network relative to that of the other layers (0.01: Karras et al. 2019, appendix
    C)."""
    head: HeadSettings | None = None
    """The output head of `package:random-face`; null for all other generators."""
    adversarial: AdversarialSettings
    """The adversarial training of the paper."""
    ema: Decay
    """Decay per update of the moving average of the generator's weights, which is what the checkpoint holds (0.999:
    ours; the paper gives a half-life)."""
    samples_every: PositiveInt = 5000
    """Number of steps between two sheets of sample images."""
    quality_samples: Annotated[int, Field(ge=2)] = 2000
    """Number of generated faces on which the quality of the finished generator is measured."""
    small_scale: GeneratorSmallScale = GeneratorSmallScale()
    """Further phases of training for small scales."""
    floor_detection: Share = 0.95
    """Smallest share of generated faces (truncation 0.7) that dlib's HOG detector must find. A training that stays
    below it fails."""
