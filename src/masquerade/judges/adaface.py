"""AdaFace IR-50: a recognizer whose training margin depends on the quality of the picture."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._published import ARCFACE_CROP, PublishedJudge, cut
from masquerade.networks.inputs import device, piecewise

if TYPE_CHECKING:
    import torch


class Adaface(PublishedJudge):
    """``embedding``: unit vectors (512,), compare them by their angle; ``quality``: their length before normalization,
    which grows with the quality of the picture.

    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``, which fits aligned faces), 8-bit at 112 x 112,
    BGR in [-1, 1]. The tensors ``head.*`` of the file (the classes and running means of its loss) are not used.
    """

    title = "AdaFace (IR-50, MS1MV2)"
    source = "Kim et al. 2022, arXiv:2204.00964; adaface_ir50_ms1mv2.ckpt of mk-minchul/AdaFace"
    packages = ("torch",)
    assets = ("adaface_ir50",)
    quantities = {"embedding": (512,), "quality": ()}

    def _build(self, path: Path) -> "torch.nn.Module":
        from torch.nn import ModuleDict

        from masquerade.networks.ir_se import AdaFaceIR
        from masquerade.training import weight_files

        weights = weight_files.tensors(weight_files.read(path), path, {"head.": "its classes"}, under="state_dict")
        return weight_files.load(ModuleDict({"model": AdaFaceIR()}), weights, path)["model"]

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        faces = cut(images, ARCFACE_CROP, 112)[..., ::-1].transpose(0, 3, 1, 2)  # BGR
        embedding, length = self._network(torch.from_numpy(faces.astype(np.float32) / 127.5 - 1.0).to(device()))
        return {"embedding": embedding.cpu().numpy(), "quality": length[:, 0].cpu().numpy()}
