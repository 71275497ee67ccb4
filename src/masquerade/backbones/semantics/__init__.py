"""The text-image model (CLIP, FaRL): its parameters, training, quality, and the readers of its published files.

The architecture comes from the package open_clip; the methods that use its features are in methods/.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from masquerade.core.settings import Settings, Share
from masquerade.training.settings import Betas, KernelSmallScale, Published, RisingUpdates


class TextSettings(Settings):
    """The text transformer and its vocabulary."""

    vocabulary: Literal["clip", "captions"]
    """The vocabulary: clip is CLIP's 49,408 byte pairs, and captions are the words of the training captions, which the
    checkpoint holds."""
    context: Annotated[int, Field(ge=4)]
    """Number of tokens of a sentence, including start and end; longer sentences are cut (77: CLIP's code)."""
    width: PositiveInt
    """Number of channels (512: Radford et al. 2021, Table 20, ViT-B/16)."""
    layers: PositiveInt
    """Number of transformer blocks (12: Radford et al. 2021, Table 20)."""
    heads: PositiveInt
    """Number of attention heads, which divides the width (8: Radford et al. 2021, Table 20)."""


class SemanticsSmallScale(KernelSmallScale):
    """How the text-image model differs from CLIP at a small scale, which has few images and few steps. Muon trains
    matrices as well.
    """

    stem: list[PositiveInt] = []
    """Number of channels of each convolution of stride 2 that embeds a patch (Xiao et al. 2021); an empty list uses
    CLIP's single convolution."""
    per_person: NonNegativeInt = 0
    """Number of images of each person in a batch, so that the captions in a batch differ little; 0 mixes people at
    random, as CLIP does."""
    position_std: PositiveFloat = 0.036
    """Initial standard deviation of the position embeddings (0.036: width^-0.5, OpenAI's CLIP code)."""
    attention_gain: PositiveFloat = 1.0
    """Initial factor of the query and key weights of the image transformer (1: as in open_clip)."""
    word_weight: NonNegativeFloat = 0.0
    """Weight of additional losses on single words of the captions, relative to the contrastive loss, which has weight
    1; 0 leaves them out, as CLIP does."""


class SemanticsSettings(Published, RisingUpdates):
    """The network, its training and its floors."""

    sources = {
        "published": "FaRL, CLIP or OpenCLIP",
        "batch": "with their captions; 32,768 of 400 million: Radford et al. 2021, Table 18",
        "learning_rate": "0.0005: Radford et al. 2021, Table 20",
        "weight_decay": "not for gains and biases; 0.2: Radford et al. 2021, Table 18",
    }

    image_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the network's input, to which it resizes images (224: Radford et al. 2021)."""
    patch: PositiveInt
    """Side in pixels of a patch, which divides the image size (16: FaRL)."""
    width: PositiveInt
    """Number of channels of the image transformer (768: Radford et al. 2021, Table 20)."""
    layers: PositiveInt
    """Number of blocks of the image transformer (12: Radford et al. 2021, Table 20)."""
    heads: PositiveInt
    """Number of attention heads of the image transformer, which divides its width (12: Radford et al. 2021, Table
    20)."""
    embedding: PositiveInt
    """Length of the features of images and sentences (512: Radford et al. 2021, Table 20)."""
    activation: Literal["quick_gelu", "gelu"]
    """The activation function: quick_gelu is x sigmoid(1.702 x), in OpenAI's and FaRL's weights, and gelu is that of
    OpenCLIP's weights. No weight file states which one it needs."""
    text: TextSettings
    """The text transformer."""
    warmup: NonNegativeInt
    """Number of steps over which the learning rate rises (2,000: Radford et al. 2021, Table 18)."""
    betas: Betas
    """beta 1 and beta 2 of AdamW (0.9, 0.98: Radford et al. 2021, Table 18)."""
    epsilon: PositiveFloat
    """epsilon of AdamW (1e-6: Radford et al. 2021, Table 18)."""
    temperature: PositiveFloat
    """Initial temperature of the contrastive loss. It is trained, and stays at 0.01 or more (0.07: Radford et al. 2021,
    2.5)."""
    small_scale: SemanticsSmallScale = SemanticsSmallScale()
    """How the model differs from CLIP at a small scale."""
    floor_zero_shot: Share = 0.8
    """Smallest balanced accuracy, averaged over the attributes, of attributes that are predicted with sentences. A
    training that stays below it fails; at 0 there is no such condition."""
    floor_retrieval: Share = 0.5
    """Smallest share of images whose caption is among the five nearest ones. A training that stays below it fails; at 0
    there is no such condition."""
    floor_neighbor: Share = 0.0
    """Smallest balanced accuracy, averaged over the attributes, of attributes that are taken from the nearest other
    person. A training that stays below it fails; at 0 there is no such condition."""
