"""The text-image model: features of what a face shows apart from its identity. FALCO pairs faces with it."""

from pathlib import Path
from typing import TYPE_CHECKING

from masquerade.backbones import Backbone
from masquerade.backbones.semantics import SemanticsSettings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from masquerade.backbones.semantics.network import SemanticEncoder


class Semantics(Backbone):
    """Radford et al. 2021 (CLIP): an image and a text transformer whose features of a face and its caption agree.

    Published size: the ViT-B/16 of FaRL (Zheng et al. 2022), which was trained on faces; it is the image encoder of
    FALCO's section 3.1. Name FaRL's or CLIP's file in ``published``, or train here on the captions of the faces.
    """

    title = "text-image model (CLIP)"
    source = "trained here on the captions of the backbones' people, or FaRL / CLIP as published"

    architecture = (
        "image_size",
        "patch",
        "small_scale.stem",
        "width",
        "layers",
        "heads",
        "embedding",
        "activation",
        "text",
    )
    Params = SemanticsSettings
    params: SemanticsSettings

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones.semantics import training

        training.train(self.params, job)

    def convert_official(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones.semantics import training

        training.convert_official(self.params, published, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones.semantics import quality

        return quality.quality(self.load(job.checkpoint), job, self.floors())

    @classmethod
    def load(cls, checkpoint: Path) -> "SemanticEncoder":
        from masquerade.backbones.semantics import network

        return network.load(checkpoint)

    def floors(self) -> dict[str, float]:
        floors = {
            "zero_shot": self.params.floor_zero_shot,
            "retrieval_5": self.params.floor_retrieval,
            "neighbor": self.params.floor_neighbor,
        }
        return {name: floor for name, floor in floors.items() if floor > 0}
