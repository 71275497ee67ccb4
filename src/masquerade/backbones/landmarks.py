"""The landmark network: where the 68 points of a face are. iFADIT keeps pose and expression by it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._landmarks import Landmarker

Count = Annotated[int, Field(ge=1)]


class Landmarks(Backbone):
    """CNN-6 of Feng et al. 2018 with its Wing loss: the landmark extractor that iFADIT's Eq. 13 and 20 cite.

    No public weights of it in a layout that PyTorch reads are known, so there is nothing to adopt: it is trained here.
    """

    title = "landmark network (CNN-6, Wing loss)"
    source = "trained here on the 68 landmarks of the train split"

    class Params(Settings):
        input_size: Annotated[int, Field(ge=32)]
        """Side in pixels of the network's input; pictures are brought to it inside (64: Feng et al. 2018)."""
        widths: Annotated[list[Count], Field(min_length=1, max_length=7)]
        """Channels of the convolutions, each followed by a halving (32, 64, 128, 256, 512: CNN-6)."""
        hidden: Count
        """Units of the hidden layer (1024: CNN-6)."""
        steps: Count
        """Batches."""
        batch: Annotated[int, Field(ge=2)]
        """Pictures in a batch."""
        learning_rate: Annotated[float, Field(gt=0)]
        """The largest one of AdamW; it rises over the first tenth of the steps and falls as a cosine."""
        kernel_rate: Annotated[float, Field(ge=0)]
        """Of Muon, for the kernels, with the same rise and fall (0: AdamW for these too)."""
        weight_decay: Annotated[float, Field(ge=0)]
        """Of AdamW."""
        wing_width: Annotated[float, Field(gt=0)]
        """w of the Wing loss in pixels of the input: errors below it weigh by a logarithm (10: Feng et al. 2018)."""
        wing_epsilon: Annotated[float, Field(gt=0)]
        """epsilon of the Wing loss in pixels: how sharp the logarithm bends (2: Feng et al. 2018)."""
        floor_share: Annotated[float, Field(ge=0, le=1)]
        """Share of the faces with a normalised mean error below 8 % below which the run stops."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _landmarks

        _landmarks.train(self.params, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _landmarks

        return _landmarks.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Landmarker":
        from masquerade.backbones import _landmarks

        return _landmarks.load(checkpoint)

    def floors(self) -> dict[str, float]:
        return {"share_below_8": self.params.floor_share}
