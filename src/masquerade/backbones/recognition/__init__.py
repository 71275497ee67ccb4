"""Code that identity, recognizer_a and recognizer_b share: parameters, ArcFace training and verification figures.

The backbones themselves are one folder up; published recognizers that only judge are in judges/.
"""

from typing import Annotated

from pydantic import Field, PositiveFloat

from masquerade.core.settings import Channels, Settings, Share
from masquerade.training.settings import KernelSmallScale, Published, RisingUpdates


class RecognitionSettings(RisingUpdates):
    """What a training of a recognizer takes."""

    sources = {
        "weight_decay": "0.0005: Deng et al. 2019, section 3.1",
    }
    input_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the network's input; the network resizes images to it."""
    identities: tuple[Share, Share]
    """Part of the people of its group, in the order of a hash of their names: [0, 0.5] is the first half."""
    scale: PositiveFloat
    """s of ArcFace (64: Deng et al. 2019, section 3.1)."""
    margin: Annotated[float, Field(ge=0, le=1.5)]
    """m of ArcFace in radians (0.5: Deng et al. 2019, section 3.1)."""
    floor_auc: Share = 0.98
    """The area under the ROC curve on unseen identities below which the run stops."""
    floor_tar: Share = 0.9
    """The true-accept rate at a false-accept rate of 1 % on unseen identities below which the run stops."""
    small_scale: KernelSmallScale = KernelSmallScale()
    """What small scales change."""


class PhotographSettings(Settings):
    """A training for photographs: a trunk with ImageNet's weights, on faces whose surroundings are exchanged."""

    frozen: Annotated[int, Field(ge=0, le=18)]
    """The first blocks that keep ImageNet's weights: of 18 of MobileNetV2, of 17 of EfficientNet-Lite0."""
    exchanged: Share
    """Share of the images whose hair, clothes and background come from another person."""
    erased: Share
    """Share of the images whose hair, clothes and background are one color with noise."""


SMALLEST_INPUT = 75  # with fewer pixels, the convolutions without padding leave none


class IdentitySettings(Published):
    """The network, the file to adopt, or its training."""

    sources = {
        "published": "model_ir_se50.pth: ``asset:ir_se50``; it sees FALCO's crop of an image",
    }

    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
    units: Annotated[list[int], Field(min_length=4, max_length=4)]
    """Blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
    photographs: PhotographSettings | None = None
    """The training for photographs, whose network has no widths and units; null: IR-SE."""
    recognition: RecognitionSettings
    """Its training identities, its training, and its floors."""
