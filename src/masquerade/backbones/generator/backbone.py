"""The generator StyleGAN2. FALCO and later methods work in its latent space."""

from pathlib import Path
from types import ModuleType

from masquerade.assets import random_face
from masquerade.backbones import TrainedBackbone
from masquerade.backbones.generator import GeneratorSettings
from masquerade.core import weight_names
from masquerade.networks.inputs import place
from masquerade.training import cards
from masquerade.training.settings import TrainingJob


class StyleGenerator(TrainedBackbone):
    """Karras et al. 2020 (StyleGAN2), at any size from 8 to 1024 pixels; published: FFHQ at 1024, config F.

    It is trained here in three phases, which docs/backbones.md explains. Each phase may be left out.
    """

    title = "generator (StyleGAN2)"
    source = "Karras et al. 2020, arXiv:1912.04958; at small scales trained here on the training faces"

    architecture = ("channels", "style", "mapping", "mapping_rate")
    Params = GeneratorSettings
    params: GeneratorSettings

    @property
    def weights(self) -> str:
        """As `Backbone.weights`; for a generator of a package the weights of its head."""
        return weight_names.parse_weights_name(self.params.head.published) if self.params.head else super().weights

    @property
    def terms(self) -> str:
        return random_face.TERMS if self.params.published == random_face.PUBLISHED else ""

    @property
    def published(self) -> Path | None:
        """As `Backbone.published`; None for a generator of a package, which is read where it is installed."""
        return cards.weights_path(self.weights) if self.weights else None if self.params.head else super().published

    @staticmethod
    def training() -> ModuleType:
        from masquerade.backbones.generator import training

        return training

    def quality(self, job: TrainingJob) -> dict[str, float]:
        return self.training().quality(place(self.load(job.checkpoint)), job, self.params.quality_samples)

    def floors(self) -> dict[str, float]:
        return {"detection": self.params.floor_detection}
