"""DartBlur: a blurred face, changed so that a detector that learns from it works on unprotected images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources, _region
from masquerade.methods._inpainting import region
from masquerade.methods.dartblur import HALVINGS, DartBlurSettings
from masquerade.training.settings import TrainingJob

BATCH = 32  # images at a time


class DartBlur(Method):
    """Blurs the box of the face and adds what a detector needs. Its privacy is that of the blur.

    Jiang, Bai, Lin, Wang, Guo, Fang 2023, DartBlur: Privacy Preservation with Detection Artifact Suppression, CVPR,
    pp. 16479-16488. docs/other_methods.md lists what differs from the paper and its code.
    """

    title = "DartBlur"
    paper = "Jiang et al. 2023, DartBlur, CVPR, pp. 16479-16488"
    capabilities = Capabilities(trains=True, landmarks=True)
    official = ("dartblur",)
    architecture = ("widths",)

    Params = DartBlurSettings

    class Variant(Settings):
        plain: bool
        """Whether only the blur is applied, without the network: the control."""

    params: DartBlurSettings
    variant: Variant

    def __init__(self, params: DartBlurSettings, variant: Variant, resources: Resources):
        from masquerade.methods.dartblur.training import DartBlurUNet
        from masquerade.networks.inputs import place
        from masquerade.training.checkpoints import Saved

        super().__init__(params, variant, resources)
        self._network = place(Saved(self.checkpoint).frozen("network", DartBlurUNet(params.widths)))

    @classmethod
    def train(cls, params: DartBlurSettings, job: TrainingJob) -> None:
        from masquerade.methods.dartblur import training

        training.train(params, job)

    @classmethod
    def load_official(cls, params: DartBlurSettings, path: Path):
        from masquerade.methods.dartblur.training import load_official

        return load_official(params, path)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if landmarks are unknown, or if the network cannot halve the images often enough."""
        from masquerade.methods.dartblur.training import blur_boxes
        from masquerade.networks.inputs import apply_in_batches

        height, width = faces.images.shape[-2:]
        if height != width or width % 2**HALVINGS:
            raise PictureError(
                f"is {width} x {height} pixels; this network takes squares of a multiple of {2**HALVINGS} pixels"
            )
        corners = _region.find_boxes(faces)
        plain, masks = blur_boxes(faces.images, corners), region.draw_masks(corners, width)
        if self.variant.plain:
            return plain
        generated = apply_in_batches(self._network, BATCH, plain, masks[:, None].astype(np.float32))
        return region.paste(plain, generated.numpy(), masks)
