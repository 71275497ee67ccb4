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
    """clip: the 49,408 byte pairs of CLIP; captions: the words of the training captions, saved in the checkpoint."""
    context: Annotated[int, Field(ge=4)]
    """Tokens of a sentence with start and end; longer sentences are cut (77: CLIP's code)."""
    width: PositiveInt
    """Channels (512: Radford et al. 2021, Table 20, ViT-B/16)."""
    layers: PositiveInt
    """Transformer blocks (12: Radford et al. 2021, Table 20)."""
    heads: PositiveInt
    """Attention heads; their number divides the width (8: Radford et al. 2021, Table 20)."""


class SemanticsSmallScale(KernelSmallScale):
    """What small scales change, which train on few images in few steps. Muon trains matrices too."""

    stem: list[PositiveInt] = []
    """Channels of the convolutions of stride 2 that embed a patch (Xiao et al. 2021); []: CLIP's single one."""
    per_person: NonNegativeInt = 0
    """Images of each person in a batch, so that captions in it differ little (0: no such rule, as in CLIP)."""
    position_std: PositiveFloat = 0.036
    """Initial standard deviation of the position embeddings (0.036: width^-0.5, OpenAI's CLIP code)."""
    attention_gain: PositiveFloat = 1.0
    """Initial factor of the query and key weights of the image transformer (1: as in open_clip)."""
    word_weight: NonNegativeFloat = 0.0
    """Weight of the losses on single words; the contrastive loss has weight 1 (0: none, as in CLIP)."""


class SemanticsSettings(Published, RisingUpdates):
    """The network, its training and its floors."""

    sources = {
        "published": "FaRL, CLIP or OpenCLIP",
        "batch": "with their captions; 32,768 of 400 million: Radford et al. 2021, Table 18",
        "learning_rate": "0.0005: Radford et al. 2021, Table 20",
        "weight_decay": "not for gains and biases; 0.2: Radford et al. 2021, Table 18",
    }

    image_size: Annotated[int, Field(ge=16)]
    """Side in pixels of the network's input; the network resizes images to it (224: Radford et al. 2021)."""
    patch: PositiveInt
    """Side of a patch in pixels; it divides the image size (16: FaRL)."""
    width: PositiveInt
    """Channels of the image transformer (768: Radford et al. 2021, Table 20)."""
    layers: PositiveInt
    """Blocks of the image transformer (12: Radford et al. 2021, Table 20)."""
    heads: PositiveInt
    """Attention heads of the image transformer; they divide its width (12: Radford et al. 2021, Table 20)."""
    embedding: PositiveInt
    """Length of the features of images and sentences (512: Radford et al. 2021, Table 20)."""
    activation: Literal["quick_gelu", "gelu"]
    """quick_gelu: x sigmoid(1.702 x), in OpenAI's and FaRL's weights; gelu: in OpenCLIP's. No file states it."""
    text: TextSettings
    """The text transformer."""
    warmup: NonNegativeInt
    """Steps over which the learning rate rises (2,000: Radford et al. 2021, Table 18)."""
    betas: Betas
    """beta 1 and beta 2 of AdamW (0.9, 0.98: Radford et al. 2021, Table 18)."""
    epsilon: PositiveFloat
    """epsilon of AdamW (1e-6: Radford et al. 2021, Table 18)."""
    temperature: PositiveFloat
    """Initial temperature of the loss; it is trained, and at least 0.01 (0.07: Radford et al. 2021, 2.5)."""
    small_scale: SemanticsSmallScale = SemanticsSmallScale()
    """What small scales change."""
    floor_zero_shot: Share = 0.8
    """Smallest mean balanced accuracy of attributes predicted with sentences; below it the run stops; 0: no floor."""
    floor_retrieval: Share = 0.5
    """Smallest share of images whose caption is among the nearest five; below it the run stops; 0: no floor."""
    floor_neighbor: Share = 0.0
    """Smallest mean balanced accuracy of attributes taken from the nearest other person; 0: no floor."""
