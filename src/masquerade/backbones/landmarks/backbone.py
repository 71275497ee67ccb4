"""The landmark network: it predicts the 68 points of a face. iFADIT preserves pose and expression with it."""

from types import ModuleType

from masquerade.backbones import TrainedBackbone
from masquerade.backbones.landmarks import LandmarksSettings


class Landmarks(TrainedBackbone):
    """CNN-6 of Feng et al. 2018 with its Wing loss: the landmark extractor that iFADIT's Eq. 13 and 20 cite.

    It is always trained here, because we know of no public weights in a layout that PyTorch reads.
    """

    title = "landmark network (CNN-6, Wing loss)"
    source = "trained here on the 68 landmarks of the backbones' people"
    teachers = ("dlib_face",)

    architecture = ("input_size", "widths", "hidden")
    Params = LandmarksSettings
    params: LandmarksSettings

    @staticmethod
    def training() -> ModuleType:
        from masquerade.backbones.landmarks import training

        return training

    def floors(self) -> dict[str, float]:
        return {"share_below_8": self.params.floor_share}
