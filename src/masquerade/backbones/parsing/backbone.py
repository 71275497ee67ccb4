"""The face parser: it gives each pixel a class. iFADIT preserves the background and compares faces with it."""

from types import ModuleType

from masquerade.backbones import TrainedBackbone
from masquerade.backbones.parsing import ParsingSettings


class Parsing(TrainedBackbone):
    """Yu et al. 2018 (BiSeNet) with the 19 classes of CelebAMask-HQ (Lee et al. 2020), cited by iFADIT's section 3.4.

    Published: ``79999_iter.pth`` of zllrunning/face-parsing.PyTorch, at 512 pixels. Name that file in
    ``published``, or train here on the masks of the rendered faces.
    """

    title = "face parser (BiSeNet)"
    source = "trained here on the masks of the backbones' people, or 79999_iter.pth as published"

    architecture = ("input_size", "width", "stride")
    any_size = True
    Params = ParsingSettings
    params: ParsingSettings

    @staticmethod
    def training() -> ModuleType:
        from masquerade.backbones.parsing import training

        return training

    def floors(self) -> dict[str, float]:
        return {"miou": self.params.floor_miou, "pixel_accuracy": self.params.floor_accuracy}
