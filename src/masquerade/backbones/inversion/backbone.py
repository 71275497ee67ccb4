"""The inversion: an encoder from images to codes in W+ of the generator."""

from types import ModuleType

from masquerade.backbones import TrainedBackbone
from masquerade.backbones.inversion import InversionSettings


class Inversion(TrainedBackbone):
    """Tov et al. 2021 (e4e) or Richardson et al. 2021 (pSp); published: FFHQ at 1024 pixels, input of 256.

    The kind ``mobile`` is ours, for photographs: a cheap encoder and an optimization after it (docs/backbones.md).

    It belongs to one generator. Adopting it or using it with another generator is an error.
    """

    title = "inversion (e4e)"
    source = "Tov et al. 2021, arXiv:2102.02766; at small scales trained here on the training faces"
    needs = ("generator", "identity")
    losses = ("alexnet",)  # LPIPS: Tov et al. 2021, appendix A

    architecture = ("kind", "small_scale.linear", "input_size", "widths", "units")
    Params = InversionSettings
    params: InversionSettings

    @staticmethod
    def training() -> ModuleType:
        from masquerade.backbones.inversion import training

        return training

    def floors(self) -> dict[str, float]:
        return {"identity": self.params.floor_identity, "psnr": self.params.floor_psnr}
