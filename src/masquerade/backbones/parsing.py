"""The face parser: which pixel shows what. iFADIT keeps the background by it and compares faces with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._parsing import Parser

CLASSES = (
    "background", "skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "l_ear", "r_ear", "ear_r", "nose", "mouth",
    "u_lip", "l_lip", "neck", "neck_l", "cloth", "hair", "hat",
)  # fmt: skip
"""What a label names: the order of the published weights, which is that of the archives' masks."""
FACE = ("skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "nose", "mouth", "u_lip", "l_lip")
"""The classes of the face region of iFADIT's Eq. 11: what lies inside of the face's outline, spectacles among it."""

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class Parsing(Backbone):
    """Yu et al. 2018 (BiSeNet) with the 19 classes of CelebAMask-HQ (Lee et al. 2020), cited by iFADIT's section 3.4.

    Published: ``79999_iter.pth`` of zllrunning/face-parsing.PyTorch, at 512 pixels. Give that file as ``published``,
    or train here on the masks of the drawn faces.
    """

    title = "face parser (BiSeNet)"
    source = "trained here on the masks of the train split, or 79999_iter.pth as published"

    class Params(Settings):
        published: str
        """79999_iter.pth (or parsing_bisenet.pth) in the place of a training: ``asset:bisenet``, ``path`` or
        ``path#sha256=<its sum>``; '': trained here."""
        input_size: Annotated[int, Field(ge=32)]
        """Side in pixels of the network's input; pictures are brought to it inside (512: the published code)."""
        width: Annotated[int, Field(ge=4)]
        """Channels of the stem; all others are multiples of it (64: ResNet-18, the published weights)."""
        stride: Literal[2, 4, 8]
        """Pixels of the input per position of the finest features (8: the published weights)."""
        steps: Count
        """Batches (80,000: the published code)."""
        batch: Annotated[int, Field(ge=2)]
        """Pictures in a batch (16 on each of two GPUs: the published code)."""
        learning_rate: Annotated[float, Field(gt=0)]
        """The largest one of AdamW; it rises over the first tenth of the steps and falls as a cosine."""
        kernel_rate: Annotated[float, Field(ge=0)]
        """Of Muon, for the kernels, with the same rise and fall (0: AdamW for these too)."""
        weight_decay: Annotated[float, Field(ge=0)]
        """Of AdamW (0.0005: the published code)."""
        auxiliary: Annotated[float, Field(ge=0)]
        """Weight of the losses at 1/8 and 1/16 of the context path (1: Yu et al. 2018, Eq. 2); 0 = untrained heads."""
        ohem_probability: Annotated[float, Field(gt=0, le=1)]
        """Pixels are hard whose true class gets less than this (0.7: the published code); 1 = all pixels count."""
        ohem_share: Share
        """At least this share of the pixels counts as hard (0.0625: the published code)."""
        balance: Share
        """Weight of a class = (its share of the pixels) ** -balance, mean 1 over pixels (0: the published code)."""
        floor_miou: Share
        """Mean intersection over union of the classes present below which the run stops."""
        floor_accuracy: Share
        """Share of the pixels labelled rightly below which the run stops."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _parsing

        _parsing.train(self.params, job)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones import _parsing_published

        _parsing_published.adopt(self.params, published, job.checkpoint)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _parsing

        return _parsing.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Parser":
        from masquerade.backbones import _parsing

        return _parsing.load(checkpoint)

    def floors(self) -> dict[str, float]:
        return {"miou": self.params.floor_miou, "pixel_accuracy": self.params.floor_accuracy}
