"""The generator StyleGAN2: its parameters, three training phases, and the published layouts that it can adopt.

The architecture is in networks/stylegan2.py; the fakes that it generates for FALCO are in methods/latent/.
"""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from masquerade.core.settings import Decay, Settings, Share, SmallScale
from masquerade.core.weight_names import WeightsName
from masquerade.training.settings import Computed, Published, Updates


class ReconstructionSettings(SmallScale):
    """A phase before the paper's (ours): from the principal components of the training images to the images."""

    steps: NonNegativeInt = 0
    """Updates; 0: no such phase, as the generators of the papers."""
    batch: PositiveInt = 8
    """Images in one update."""
    modulation: PositiveFloat = 1.0
    """Initial factor of the modulation of the convolutions (1: StyleGAN2). A small factor makes the effect of the style
    codes on an image almost linear, as that of its components is."""
    critic: NonNegativeFloat = 0.0
    """Weight of a discriminator between W and the components in the training of the mapping network; 0: energy distance
    alone."""


class SharpeningSettings(SmallScale):
    """A phase after it (ours): decoding goes on, and a discriminator and a measure of texture keep it from blurring."""

    steps: NonNegativeInt = 0
    """Updates; 0: no such phase."""
    batch: Annotated[int, Field(ge=2)] = 16
    """Images in one update, and random faces beside them."""
    kernel_rate: PositiveFloat = 0.01
    """Largest learning rate of Muon, for the weights of convolutions and modulations."""
    texture: NonNegativeFloat = 1.5
    """Weight of the difference of local sharpness: the mean magnitude of the Laplacian around a pixel."""
    samples: NonNegativeFloat = 0.02
    """Weight of the adversarial loss of random faces."""
    projected: Annotated[int, Field(ge=32, multiple_of=32)] = 256
    """Side in pixels at which the discriminator of EfficientNet-Lite1's features sees the images (256: Sauer et al.
    2021)."""
    discriminator_rate: PositiveFloat = 0.002
    """Learning rate of the discriminator's Adam."""


class GeneratorSmallScale(SmallScale):
    """What small scales change: two phases of training, in place of the paper's or before it."""

    reconstruction: ReconstructionSettings = ReconstructionSettings()
    """The first of them."""
    sharpening: SharpeningSettings = SharpeningSettings()
    """The second of them."""


class AdversarialSettings(Updates):
    """The training of StyleGAN2 (Karras et al. 2020, appendix B)."""

    sources = {
        "batch": "32: Karras et al. 2020, appendix B",
        "learning_rate": "beta 0 and 0.99, for both networks; 0.002: Karras et al. 2020, appendix B",
    }

    steps: NonNegativeInt
    """Updates; 0: no such phase (781,250 of 32 images: Karras et al. 2020, appendix B)."""
    r1: NonNegativeFloat
    """gamma of the R1 penalty of the discriminator (10: Karras et al. 2020, appendix B)."""
    r1_every: PositiveInt
    """Steps from one R1 penalty to the next (16: Karras et al. 2020, section 3.1)."""
    path_length: NonNegativeFloat
    """Weight of the path length penalty (2: Karras et al. 2020, appendix B)."""
    path_length_every: PositiveInt
    """Steps from one path length penalty to the next (8: Karras et al. 2020, section 3.1)."""
    mixing: Share
    """Share of images with two style codes (0.9: Karras et al. 2019, section 3.1)."""


class HeadSettings(Settings):
    """The head for 256 pixels of the published generator `package:random-face`."""

    published: WeightsName = ""
    """Weights to adopt instead of a training: ``weights:photo/generator``; '': trained here."""
    pictures: Annotated[int, Field(ge=64)]
    """Drawn images from which it learns."""
    steps: PositiveInt
    """Updates of its style."""


class GeneratorSettings(Published, Computed):
    """The network, the phases of its training, and its floor."""

    sources = {
        "published": "of rosinality or GenForce, or package:random-face, faces like photographs (docs/scale_photo.md)",
        "arithmetic": "bfloat16: of the first two phases alone; 0.6 of the time on a recent CPU",
    }

    channels: Annotated[list[int], Field(min_length=2, max_length=9)]
    """Channels at 4, 8, 16, ... pixels. Their number sets the size of the images (9: 1024; config F)."""
    style: PositiveInt
    """Width of Z and W (512: Karras et al. 2019)."""
    mapping: PositiveInt
    """Layers of the mapping network (8: Karras et al. 2019)."""
    mapping_rate: PositiveFloat
    """Learning rate of the mapping network relative to the others (0.01: Karras et al. 2019, appendix C)."""
    head: HeadSettings | None = None
    """The head of `package:random-face`; null for all other generators."""
    adversarial: AdversarialSettings
    """The training of the paper."""
    ema: Decay
    """Decay of the averaged generator, which is the one that is saved (0.999: ours; the paper gives a half-life)."""
    samples_every: PositiveInt = 5000
    """Steps between sample images."""
    quality_samples: Annotated[int, Field(ge=2)] = 2000
    """Generated faces on which the quality is measured."""
    small_scale: GeneratorSmallScale = GeneratorSmallScale()
    """What small scales change."""
    floor_detection: Share = 0.95
    """Smallest share of generated faces (truncation 0.7) that dlib's HOG detects; below it the run stops."""
