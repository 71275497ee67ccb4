"""FIT (Gu et al. 2020, arXiv:1911.11759): one network anonymizes a face under a password and recovers it.

The parameters are here. The class is in method.py, which imports no torch.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt

from masquerade.core.settings import Settings, Share, SmallScale
from masquerade.training.settings import AdversarialUpdates, Weight, Width


class DiscriminatorSettings(Settings):
    """Widths of a discriminator."""

    width: Width
    """Number of channels after the first convolution; each of the next ones doubles it, up to 8 times (64: the
    published code)."""
    depth: Annotated[int, Field(ge=2)]
    """Number of convolutions before the last one, which gives the scores (4, PatchGAN of 70 pixels: the published
    code)."""
    scales: PositiveInt
    """Number of discriminators for one kind of image; each takes images of half the size of the one before (2: the
    published code)."""


class ClassifierSettings(Settings):
    """Widths of the password classifier."""

    width: Width
    """Number of channels after the first convolution; each of the next ones doubles it, up to 8 times (64: the
    published code)."""
    depth: PositiveInt
    """Number of convolutions, each of which halves the image (5: the published code)."""


class FitSmallScale(SmallScale):
    """How networks and training differ from the published code at a small scale: docs/fit_and_riddle.md."""

    shared: bool = True
    """Whether the anonymized, the recovered and the wrongly recovered images share the discriminators of all scales but
    the finest (true: the published code)."""
    last_stride: Literal[2, 4] = 4
    """Stride of the last convolution of the password classifier: at 2 it halves the image as the others do, and at 4 it
    takes blocks of 4 x 4 numbers (4: the published code)."""
    first_norm: bool = False
    """Whether the first convolution is normalized (false: the published code)."""
    reach: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Largest change of the artanh of a color value, if the network predicts a change that the inverse password undoes;
    at 0 the network predicts the image itself (the published code)."""
    identity_of: Literal["first", "both"] = "first"
    """The faces in ``losses.identity``, of two anonymized and two wrongly recovered ones: first takes the first of each
    (the published code), both takes all four (ours)."""
    gray: Share = 0.0
    """Share of the faces that the identity encoder sees in gray, so that a change of color alone cannot count as
    anonymization (0: the paper)."""


class LossSettings(Settings):
    """The weights of the losses; the numbers in brackets are those of the published code."""

    adversarial: Weight
    """Weight of L_GAN, the adversarial loss (1)."""
    password: Weight
    """Weight of L_aux, the loss of the password classifier (1)."""
    identity: Weight
    """Weight of L_adv and L_rec_cls, which ask that anonymized and wrongly recovered faces are other people and that
    recovered faces are the same person (2)."""
    feature: Weight
    """Weight of L_feat between two anonymized versions of a face under two passwords (2)."""
    wrong_feature: Weight
    """Weight of L_feat between two faces that were recovered from one with two wrong passwords (1)."""
    between_feature: Weight
    """Weight of L_feat between an anonymized face and the face that a wrong password recovers from it (1)."""
    pixels: Weight
    """Weight of L_1 between the anonymized and the original image, and between the wrongly recovered and the original
    image (10)."""
    reconstruction: Weight
    """Weight of L_rec, the mean absolute difference between the recovered and the original image (100)."""


class FitSettings(AdversarialUpdates):
    """The parameters of FIT."""

    sources = {
        "steps": "each after one of the discriminators; 284,000: 30 epochs of CASIA-WebFace, the published code",
        "batch": "each is drawn five times; 48: the published code",
        "learning_rate": "0.0001: the published code",
        "betas": "0.5, 0.999: the published code",
        "kernel_rate": "of the transformer; 0 as published",
        "cooldown": "of the transformer; 0 as published",
        "ema": "0 as published",
    }

    size: Annotated[int, Field(ge=8)]
    """Side in pixels of the images of all networks; larger images, whose side is a multiple of it, are reduced to it,
    and the result is enlarged again (128: the published code)."""
    width: Width
    """Number of channels of the transformer before its first halving; each halving doubles it (64: the published
    code)."""
    halvings: PositiveInt
    """Number of times that the transformer halves the image (2: the published code)."""
    blocks: PositiveInt
    """Number of residual blocks of the transformer (9: the published code)."""
    discriminator: DiscriminatorSettings
    """The discriminators, one for each kind of image: anonymized, recovered and wrongly recovered."""
    classifier: ClassifierSettings
    """The network that predicts the password from the image before and the image after."""
    losses: LossSettings
    """The weights of the losses."""
    margin: Annotated[float, Field(ge=-1, le=1)]
    """Largest cosine of two faces that count as different people (0: torch's CosineEmbeddingLoss, published code)."""
    small_scale: FitSmallScale = FitSmallScale()
    """How networks and training differ from the published code at a small scale."""


BITS = 16  # Gu et al. 2020, section 4
GROUP = 4  # bits that the password classifier predicts as one class: the published code
COUNT = 2**BITS


def encode_bits(numbers: np.ndarray | int) -> np.ndarray:
    """Numbers in 0 .. 2^16 - 1, any shape (...,) -> their bits, most significant first, float32 (..., 16) of +-0.5."""
    bits = np.asarray(numbers)[..., None] >> np.arange(BITS - 1, -1, -1) & 1
    return bits.astype(np.float32) - np.float32(0.5)


def read_key(key: bytes) -> np.ndarray:
    """The password of a 2-byte key: float32 (16,) of +-0.5."""
    return encode_bits(int.from_bytes(key, "big"))


def invert_bits(numbers: np.ndarray) -> np.ndarray:
    """The numbers with every bit inverted: encode_bits(inverse(n)) = -encode_bits(n)."""
    return COUNT - 1 - numbers


def group_bits(numbers: np.ndarray) -> np.ndarray:
    """The targets of the classifier: each group of bits as a number in 0 .. 15, int64 (..., 4), first group first."""
    shifts = np.arange(BITS - GROUP, -1, -GROUP)
    return (np.asarray(numbers)[..., None] >> shifts & (2**GROUP - 1)).astype(np.int64)


def draw_passwords(draw: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Passwords for ``count`` faces by their purpose, int64 (count,) each.

    ``anonymized`` and ``offset``: two different passwords that hide. ``recovered``: the inverse of the first. ``wrong``
    and ``wrong_too``: two different passwords, neither of them that inverse.
    """
    first = draw.integers(COUNT, size=count)
    right = invert_bits(first)
    # An offset of 1 .. COUNT - 1 never gives the same password, and two different offsets give different passwords.
    offset, wrong = draw.integers(1, COUNT, size=(2, count))
    wrong_too = 1 + (wrong - 1 + draw.integers(1, COUNT - 1, size=count)) % (COUNT - 1)
    return {
        "anonymized": first,
        "other": (first + offset) % COUNT,
        "recovered": right,
        "wrong": (right + wrong) % COUNT,
        "wrong_too": (right + wrong_too) % COUNT,
    }
