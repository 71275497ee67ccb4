"""The generator: StyleGAN2, whose latent space FALCO and the methods after it work in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.networks.stylegan2 import Generator


class ReconstructionSettings(Settings):
    """The first phase of a training: pictures from the principal components of the training pictures."""

    steps: Annotated[int, Field(ge=0)]
    """Batches; 0: no such phase (the papers' generators are trained by the second alone)."""
    batch: Annotated[int, Field(ge=1)]
    """Pictures in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """The largest one of Muon, for the convolutions' weights; it falls to 0 over the last 40 % of the steps."""
    modulation: Annotated[float, Field(gt=0)]
    """Factor of the convolutions' modulation at the start (1: StyleGAN2): small, so that a picture's style codes act
    on it almost linearly, as its components do."""
    parts: Annotated[float, Field(ge=0)]
    """How much more a pixel of brows, eyes, nose and mouth counts than one of the background (skin: half as much)."""
    edges: Annotated[float, Field(ge=0)]
    """Weight of the differences of neighbouring pixels beside the pixels themselves."""


class AdversarialSettings(Settings):
    """The second phase: StyleGAN2's own training (Karras et al. 2020, appendix B)."""

    steps: Annotated[int, Field(ge=0)]
    """Batches; 0: no such phase."""
    batch: Annotated[int, Field(ge=2)]
    """Pictures in a batch (32: Karras et al. 2020, appendix B)."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Of Adam, beta 0 and 0.99, for both networks (0.002: Karras et al. 2020, appendix B)."""
    r1: Annotated[float, Field(ge=0)]
    """gamma of the R1 penalty of the discriminator (10: Karras et al. 2020, appendix B)."""
    r1_every: Annotated[int, Field(ge=1)]
    """Steps from one R1 penalty to the next (16: Karras et al. 2020, section 3.1)."""
    path_length: Annotated[float, Field(ge=0)]
    """Weight of the path length penalty (2: Karras et al. 2020, appendix B)."""
    path_length_every: Annotated[int, Field(ge=1)]
    """Steps from one path length penalty to the next (8: Karras et al. 2020, section 3.1)."""
    mixing: Annotated[float, Field(ge=0, le=1)]
    """Share of pictures with two style codes (0.9: Karras et al. 2019, section 3.1)."""


class StyleGenerator(Backbone):
    """Karras et al. 2020 (StyleGAN2), at any size from 8 to 1024 pixels; published: FFHQ at 1024, config F.

    Trained here in two phases, either of which may be left out; what they are and why: docs/generator.md.
    """

    title = "generator (StyleGAN2)"
    source = "Karras et al. 2020, arXiv:1912.04958; at small scales trained here on the training faces"

    class Params(Settings):
        published: str
        """A weight file of rosinality or GenForce in the place of a training: ``asset:<role>`` of `masquerade assets
        list`, ``path`` or ``path#sha256=<its sum>``; '': trained here."""
        channels: Annotated[list[int], Field(min_length=2, max_length=9)]
        """At 4, 8, 16, ... pixels; how many there are sets the size of the pictures (9: 1024; config F)."""
        style: Annotated[int, Field(ge=1)]
        """Width of Z and W (512: Karras et al. 2019)."""
        mapping: Annotated[int, Field(ge=1)]
        """Layers of the mapping network (8: Karras et al. 2019)."""
        mapping_rate: Annotated[float, Field(gt=0)]
        """Its learning rate relative to the others' (0.01: Karras et al. 2019, appendix C)."""
        reconstruction: ReconstructionSettings
        """The first phase."""
        adversarial: AdversarialSettings
        """The second phase."""
        ema: Annotated[float, Field(ge=0, lt=1)]
        """Decay of the averaged generator, which is the one that is kept (0.999: ours; the paper gives a half-life)."""
        samples_every: Annotated[int, Field(ge=1)]
        """Steps between sample pictures."""
        quality_samples: Annotated[int, Field(ge=2)]
        """Generated faces on which the quality is measured."""
        floor_detection: Annotated[float, Field(ge=0, le=1)]
        """The share of generated faces (truncation 0.7) that dlib's HOG must find, or the run stops."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _generator

        _generator.train(self.params, job)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones import _generator

        _generator.adopt(self.params, published, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _generator

        return _generator.quality(self.load(job.checkpoint), job, self.params.quality_samples)

    @classmethod
    def load(cls, checkpoint: Path) -> "Generator":
        from masquerade.backbones import _generator

        return _generator.load(checkpoint)

    def floors(self) -> dict[str, float]:
        return {"detection": self.params.floor_detection}
