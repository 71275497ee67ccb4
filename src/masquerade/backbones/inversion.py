"""The inversion: an encoder from pictures into W+ of the generator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from masquerade.backbones import Backbone
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from masquerade.backbones._inversion import Inverter


class InversionWeights(Settings):
    """lambda of each loss of the encoder's training (Tov et al. 2021, section 4 and appendix A)."""

    pixels: Annotated[float, Field(ge=0)]
    """Of the mean squared difference of the pixels (1: Tov et al. 2021, appendix A)."""
    lpips: Annotated[float, Field(ge=0)]
    """Of LPIPS by AlexNet (0.8: appendix A); 0 where AlexNet cannot be had."""
    identity: Annotated[float, Field(ge=0)]
    """Of 1 - cosine of the identity vectors (0.1: appendix A)."""
    offsets: Annotated[float, Field(ge=0)]
    """Of the squared length of the offsets from one layer's code to another's (0.0002: appendix A)."""
    adversarial: Annotated[float, Field(ge=0)]
    """Of the discriminator between codes and W (0.1: appendix A)."""
    codes: Annotated[float, Field(ge=0)]
    """Of the mean squared difference of codes on generated pictures, whose codes are known (ours; 0: not used)."""


class Inversion(Backbone):
    """Tov et al. 2021 (e4e) or Richardson et al. 2021 (pSp); published: FFHQ at 1024 pixels, seen at 256.

    It belongs to one generator: adopting or loading it beside another is an error.
    """

    title = "inversion (e4e)"
    source = "Tov et al. 2021, arXiv:2102.02766; at small scales trained here on the training faces"
    needs = ("generator", "identity")

    class Params(Settings):
        published: str
        """A published e4e or pSp file in the place of a training: ``asset:<role>`` of `masquerade assets list`,
        ``path`` or ``path#sha256=<its sum>``; '': trained here."""
        kind: Literal["e4e", "psp"]
        """e4e: one code and offsets to it; psp: a code of its own for each layer."""
        input_size: Annotated[int, Field(ge=16)]
        """Side in pixels of what the encoder sees (256: Tov et al. 2021); pictures are brought to it inside."""
        widths: Annotated[list[int], Field(min_length=5, max_length=5)]
        """Channels of the stem and the four stages (64, 64, 128, 256, 512: IR-SE-50)."""
        units: Annotated[list[int], Field(min_length=4, max_length=4)]
        """Blocks of the four stages (3, 4, 14, 3: IR-SE-50)."""
        steps: Annotated[int, Field(ge=1)]
        """Batches."""
        batch: Annotated[int, Field(ge=1)]
        """Real pictures in a batch (8: Tov et al. 2021, appendix A)."""
        learning_rate: Annotated[float, Field(gt=0)]
        """The largest one; it falls to 0 over the last 40 % of the steps (0.0001 and constant: appendix A)."""
        optimiser: Literal["adam", "muon"]
        """muon: for the weights of convolutions, with Adam for the rest; it needs fewer pictures."""
        offsets_from: Annotated[int, Field(ge=0)]
        """The step at which the first offset is learnt (20000: appendix A); before it all layers have one code."""
        offsets_every: Annotated[int, Field(ge=1)]
        """Steps from one offset's start to the next (2000: appendix A)."""
        weights: InversionWeights
        """lambda of each loss."""
        samples_every: Annotated[int, Field(ge=1)]
        """Steps between sample pictures."""
        floor_identity: Annotated[float, Field(ge=-1, le=1)]
        """The mean cosine of identity vectors of faces and their reconstructions below which the run stops."""
        floor_psnr: Annotated[float, Field(ge=0)]
        """The mean PSNR in dB of the reconstructions below which the run stops."""

    def train(self, job: TrainingJob) -> None:
        from masquerade.backbones import _inversion

        _inversion.train(self.params, job)

    def adopt(self, published: Path, job: TrainingJob) -> None:
        from masquerade.backbones import _inversion

        _inversion.adopt(self.params, published, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        from masquerade.backbones import _inversion

        return _inversion.quality(self.load(job.checkpoint), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "Inverter":
        from masquerade.backbones import _inversion

        return _inversion.load(checkpoint)

    def floors(self) -> dict[str, float]:
        return {"identity": self.params.floor_identity, "psnr": self.params.floor_psnr}
