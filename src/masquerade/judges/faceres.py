"""FaceRes: a MobileNet that learned the people of VGGFace2, from a public package for browsers."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.judges._published import ARCFACE_CROP, PublishedJudge, cut
from masquerade.networks.inputs import device, piecewise

if TYPE_CHECKING:
    import torch


class Faceres(PublishedJudge):
    """``embedding``: unit vectors (1024,); compare them by their angle.

    All numbers of a vector are positive, so faces of different people have a cosine of about 0.4.
    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``, which fits aligned faces), 8-bit at 224 x 224,
    blue first, minus the means (103.939, 116.779, 123.68).
    """

    title = "FaceRes (MobileNet, VGGFace2)"
    source = "Savchenko 2019, PeerJ Computer Science 5:e197; faceres.bin of the npm package @vladmandic/human 3.3.6"
    packages = ("torch",)
    assets = ("faceres",)
    quantities = {"embedding": (1024,)}

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.networks import mobile_embedder

        return mobile_embedder.load(path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        from masquerade.networks.mobile_embedder import MEANS, SIDE

        faces = cut(images, ARCFACE_CROP, SIDE)[..., ::-1].astype(np.float32) - np.array(MEANS, dtype=np.float32)
        vectors = self._network(torch.from_numpy(faces.transpose(0, 3, 1, 2).copy()).to(device()))
        return {"embedding": torch.nn.functional.normalize(vectors).cpu().numpy()}
