"""The text-image model: what a face shows, apart from whose it is. FALCO pairs and preserves with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._semantics import SemanticEncoder

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class TextSettings(Settings):
    vocabulary: Literal["clip", "captions"]
    """clip: the 49,408 byte pairs of CLIP. captions: the words of the training captions, kept in the checkpoint."""
    context: Annotated[int, Field(ge=4)]
    """Tokens of a sentence with its start and end; longer ones are cut (77: CLIP's code)."""
    width: Count
    """Channels (512: Radford et al. 2021, Table 20, ViT-B/16)."""
    layers: Count
    """Transformer blocks (12: Radford et al. 2021, Table 20)."""
    heads: Count
    """Attention heads; they divide the width (8: Radford et al. 2021, Table 20)."""


class Semantics(Backbone):
    """Radford et al. 2021 (CLIP): an image and a text transformer whose features of one face and its caption agree.

    Published size: the ViT-B/16 that FaRL (Zheng et al. 2022) trained on faces, the image encoder of FALCO's
    section 3.1. Give FaRL's or CLIP's own file as ``published``, or train here on the captions of the faces.
    """

    title = "text-image model (CLIP)"
    source = "trained here on the captions of the train split, or FaRL / CLIP as published"

    class Params(Settings):
        published: str
        """An official weight file (FaRL, CLIP or OpenCLIP) in the place of a training: ``asset:<role>`` of `masquerade
        assets list`, ``path`` or ``path#sha256=<its sum>``; '': trained here."""
        image_size: Annotated[int, Field(ge=16)]
        """Side in pixels of the network's input; pictures are brought to it inside (224: Radford et al. 2021)."""
        patch: Count
        """Side of a patch in pixels; it divides the image size (16: FaRL)."""
        stem: list[Count]
        """Channels of convolutions of stride 2 that embed a patch (Xiao et al. 2021); [] = CLIP's single one."""
        width: Count
        """Channels of the image transformer (768: Radford et al. 2021, Table 20)."""
        layers: Count
        """Blocks of the image transformer (12: Radford et al. 2021, Table 20)."""
        heads: Count
        """Attention heads of the image transformer; they divide its width (12: Radford et al. 2021, Table 20)."""
        embedding: Count
        """Numbers of a feature that pictures and sentences share (512: Radford et al. 2021, Table 20)."""
        activation: Literal["quick_gelu", "gelu"]
        """quick_gelu: x sigmoid(1.702 x), in OpenAI's and FaRL's weights; gelu: in OpenCLIP's own. No file tells."""
        text: TextSettings
        """The text transformer."""
        steps: Count
        """Batches."""
        batch: Annotated[int, Field(ge=2)]
        """Pictures, with their captions, in a batch (32,768 of 400 million: Radford et al. 2021, Table 18)."""
        learning_rate: Annotated[float, Field(gt=0)]
        """The largest one of AdamW (0.0005: Radford et al. 2021, Table 20); it rises, then falls as a cosine."""
        kernel_rate: Annotated[float, Field(ge=0)]
        """Of Muon, for matrices and kernels (0: AdamW for these too, as published)."""
        per_person: Annotated[int, Field(ge=0)]
        """Pictures of each person in a batch, so that its captions differ in little (0: CLIP has no such rule)."""
        warmup: Annotated[int, Field(ge=0)]
        """Steps of the rise (2,000: Radford et al. 2021, Table 18)."""
        betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
        """Of AdamW (0.9, 0.98: Radford et al. 2021, Table 18)."""
        epsilon: Annotated[float, Field(gt=0)]
        """Of AdamW (1e-6: Radford et al. 2021, Table 18)."""
        weight_decay: Annotated[float, Field(ge=0)]
        """Of AdamW, on weights that are not gains or biases (0.2: Radford et al. 2021, Table 18)."""
        temperature: Annotated[float, Field(gt=0)]
        """Of the contrastive loss at the start; it is learnt, and never below 0.01 (0.07: Radford et al. 2021, 2.5)."""
        position_std: Annotated[float, Field(gt=0)]
        """Standard deviation of the place embeddings at the start (0.036: width^-0.5, OpenAI's CLIP code)."""
        attention_gain: Annotated[float, Field(gt=0)]
        """Factor on the image transformer's query and key weights at the start (1: as open_clip draws them)."""
        word_weight: Annotated[float, Field(ge=0)]
        """Weight of the losses on single words beside the contrastive one, whose weight is 1 (0: CLIP has none)."""
        floor_zero_shot: Share
        """Mean balanced accuracy of attributes read off by sentences below which the run stops; 0 = not asked."""
        floor_retrieval: Share
        """Share of pictures whose caption is among the nearest five below which the run stops; 0 = not asked."""
        floor_neighbour: Share
        """Mean balanced accuracy of attributes of the nearest other person below which it stops; 0 = not asked."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _semantics_training

        _semantics_training.train(self.params, job)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones import _semantics_published

        _semantics_published.adopt(self.params, published, job.checkpoint)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _semantics_quality

        return _semantics_quality.quality(self.load(job.checkpoint), job, asked=self.floors())

    @classmethod
    def load(cls, checkpoint: Path) -> "SemanticEncoder":
        from masquerade.backbones import _semantics

        return _semantics.load(checkpoint)

    def floors(self) -> dict[str, float]:
        floors = {
            "zero_shot": self.params.floor_zero_shot,
            "retrieval_5": self.params.floor_retrieval,
            "neighbour": self.params.floor_neighbour,
        }
        return {name: floor for name, floor in floors.items() if floor > 0}
