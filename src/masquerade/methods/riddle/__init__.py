"""RiDDLE (Li et al. 2023): a transformer encrypts the latent code of a face with a password, and decrypts it.

The parameters are here. The class is in method.py, which imports no torch.
"""

from statistics import NormalDist
from types import SimpleNamespace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from masquerade.backbones.inversion import RefinementSettings
from masquerade.core import keys
from masquerade.core.settings import Settings, SmallScale
from masquerade.training.settings import Averaged, Updates, Weight


class LossSettings(Settings):
    """The weights of the losses."""

    lpips: Weight
    """Weight of LPIPS between the target and each of the five images, summed over the five (1: the published code). It
    needs the weights that ``perceptual`` names."""
    reversed_identity: Weight
    """Weight of the similarity of identities that must differ (1: Li et al. 2023)."""
    identity_recovery: Weight
    """Weight of the identity loss between the original and the face that the right password recovers (1: Li et al.
    2023)."""
    pixels: Weight
    """Weight of the difference of pixels that ``pixels_of`` chooses (0.05: the published code)."""


class FurtherLosses(SmallScale):
    """The weights of losses that the paper does not have (ours)."""

    layout: Weight = 0.0
    """Weight of the difference of the five images at 8 pixels, for when LPIPS is not available (ours; 0: the paper)."""
    latents: Weight = 0.0
    """Weight of the mean squared difference between decrypted and original latent code, in updates without images
    (ours; 0: the paper)."""
    reversed_latents: Weight = 0.0
    """Weight of ``reversed_identity`` computed on latent codes instead of identity embeddings (ours; 0: the paper)."""
    distribution: Weight = 0.0
    """Weight of the energy distance between encrypted latent codes and latent codes of faces (ours; 0: the paper)."""
    reinverted: Weight = 0.0
    """Weight of the identity and pixel losses after recovery from the finished image, which is inverted again (ours; 0:
    the paper)."""


class RiddleSmallScale(SmallScale):
    """How the training differs from the paper's at a small scale: docs/fit_and_riddle.md."""

    losses: FurtherLosses = FurtherLosses()
    """The weights of further losses."""
    target: Literal["inverted", "original"] = "inverted"
    """What the images are compared with: the image that the generator gives for the inverted latent code (the published
    code), or the original image (ours)."""
    perceptual: Literal["vgg", "alex"] = "vgg"
    """The network of LPIPS: VGG-16 (the published code) or AlexNet."""
    pixels_of: Literal["five", "recovered"] = "five"
    """five sums the mean absolute difference over the five images (the published code); recovered takes the mean
    squared difference of the recovered image alone (ours)."""
    pairs: Literal["published", "six"] = "published"
    """The pairs of faces whose identities must differ: published compares encrypted and wrongly decrypted faces with
    the original, and the latter with the recovered face, and takes a mean for each kind (the published code); six takes
    one mean over six pairs, `compare_different` (ours)."""
    visible: NonNegativeInt = 0
    """Number of directions in which codes are encrypted: those in which the codes of the encoder differ most, so that
    the image of an encrypted code shows it. 0 encrypts all numbers of W+ (0: Li et al. 2023)."""
    noise: NonNegativeFloat = 0.0
    """Deviation of the noise that the coordinates of an encrypted code get in the training before they are decrypted;
    faces have coordinates of deviation 1. It needs ``visible`` (0: Li et al. 2023)."""
    pictures_every: PositiveInt = 1
    """One in this many updates generates images (1: Li et al. 2023); the others work on latent codes alone."""
    code_batch: PositiveInt = 64
    """Number of latent codes in an update without images, for ``losses.latents`` and ``losses.reversed_latents``."""
    clip: PositiveFloat | None = None
    """Largest norm of the gradient of all weights; null sets no limit, as in the paper (ours). Without a limit, some
    trainings failed on latent codes that are far from those of faces."""
    optimizer: Literal["ranger", "muon"] = "ranger"
    """The optimizer: ranger (Li et al. 2023), or muon for the matrices, with Adam for the rest."""


class RiddleSettings(Updates, Averaged):
    """The parameters of RiDDLE."""

    sources = {
        "steps": "at most 100,000: Li et al. 2023",
        "learning_rate": "or of Ranger, or of Muon; 0.0005: Li et al. 2023",
    }

    groups: Annotated[list[PositiveInt], Field(min_length=1)]
    """Number of style layers of each decoder layer, of 14 in all (4, 4, 6: Li et al. 2023); smaller generators:
    docs/fit_and_riddle.md."""
    width: Annotated[int, Field(ge=4)]
    """Width d of the transformer (512: Li et al. 2023)."""
    heads: PositiveInt
    """Number of attention heads (4: Li et al. 2023)."""
    hidden: Annotated[int, Field(ge=4)]
    """Width of the feed-forward part of the transformer (1024: Li et al. 2023)."""
    losses: LossSettings
    """The weights of the losses."""
    margin: Annotated[float, Field(ge=-1, le=1)]
    """Largest cosine of two identity embeddings that count as different people (0.1: Li et al. 2023)."""
    batch: PositiveInt
    """Number of faces in an update with images (4: Li et al. 2023)."""
    small_scale: RiddleSmallScale = RiddleSmallScale()
    """How the training differs from the paper at a small scale."""

    @property
    def weights(self) -> SimpleNamespace:
        """The weights of all losses, by name."""
        return SimpleNamespace(**dict(self.losses), **dict(self.small_scale.losses))

    @property
    def codes_alone(self) -> bool:
        """Whether a loss is on codes that are not drawn."""
        further = self.small_scale.losses
        return bool(further.latents or further.reversed_latents or further.distribution)

    @model_validator(mode="after")
    def _something_to_learn(self) -> Self:
        if self.small_scale.noise and not self.small_scale.visible:
            raise ValueError("small_scale.noise needs small_scale.visible: it is added to the coordinates of a code")
        if self.small_scale.pictures_every > 1 and not self.codes_alone:
            raise ValueError(
                "small_scale.pictures_every must be 1 if no loss is on codes alone, because the other updates learn "
                "nothing"
            )
        return self


class RiddleVariant(Settings):
    """What RiDDLE does with an image, without a new training."""

    search: RefinementSettings | None = None
    """The optimization that finds a code in the directions of ``small_scale.visible`` for an original or an encrypted
    image; null takes the codes of the inversion, for a network that encrypts all of W+."""
    correction_steps: NonNegativeInt = 0
    """Steps of `LatentEncryptor.correct` after the network decrypted; 0 takes its answer, as published."""


BYTES = 8  # bytes of the derived key for each number


def derive_password(key: bytes, width: int) -> np.ndarray:
    """A key (any bytes) -> z, float32 (width,), standard normal. ``width`` is at most 1,020.

    HKDF (keys.expanded) derives 8 bytes for each number. Their first 53 bits k give the uniform number
    (k + 1/2) / 2^53, and z is the inverse normal distribution function of it. Keys that differ in one bit give
    unrelated passwords.
    """
    derived = np.frombuffer(keys.expand(key, BYTES * width, "riddle password"), dtype=">u8")
    inverse = NormalDist().inv_cdf
    return np.array([inverse(((int(word) >> 11) + 0.5) / 2**53) for word in derived], dtype=np.float32)
