"""The parameters of the backbone `identity`."""

from typing import Annotated

from pydantic import Field

from masquerade.backbones.recognition import PhotographSettings, RecognitionSettings
from masquerade.core.settings import Channels
from masquerade.training.settings import Published


class IdentitySettings(Published):
    """The network, the file to adopt, or its training."""

    sources = {
        "published": "model_ir_se50.pth: ``asset:ir_se50``; it sees FALCO's crop of a picture",
    }

    widths: Annotated[list[Channels], Field(min_length=5, max_length=5)]
    """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
    units: Annotated[list[int], Field(min_length=4, max_length=4)]
    """Blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
    photographs: PhotographSettings | None = None
    """The training for photographs, whose network has no widths and units; null: IR-SE."""
    recognition: RecognitionSettings
    """Its training identities, its training, and its floors."""
