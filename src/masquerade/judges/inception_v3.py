"""InceptionV3 of the Frechet Inception distance (FID): the network and the weights of pytorch-fid."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core.images import to_uint8
from masquerade.judges._published import PublishedJudge
from masquerade.networks.inputs import device, piecewise

if TYPE_CHECKING:
    import torch

CLASSES, SIDE = 1008, 299  # number of classes and input side in pixels of the network of 2015


class InceptionV3(PublishedJudge):
    """``features``: the 2048 channels of the last layer, averaged over space, on which FID is computed.

    Preprocessing, as in pytorch-fid: 8-bit RGB in [0, 1], resized to 299 x 299 by bilinear interpolation without
    anti-aliasing, then to [-1, 1]. Compare FIDs only at the same picture size and the same number of faces.
    """

    title = "InceptionV3"
    source = (
        "Szegedy et al. 2016, arXiv:1512.00567; Heusel et al. 2017; pt_inception-2015-12-05-6726825d of pytorch-fid"
    )
    packages = ("pytorch-fid", "torchvision", "torch")
    assets = ("inception_fid",)
    quantities = {"features": (2048,)}

    def _build(self, path: Path) -> "torch.nn.Module":
        from torch.nn import Identity

        from masquerade.training import weight_files

        network = weight_files.load(network_of_fid(), weight_files.tensors(weight_files.read(path), path), path)
        network.fc = Identity()  # instead of the classes
        return network

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch
        from torch.nn.functional import interpolate

        unit = torch.from_numpy(to_uint8(images).transpose(0, 3, 1, 2).astype(np.float32) / 255.0).to(device())
        signal = interpolate(unit, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
        return {"features": self._network(2.0 * signal - 1.0).cpu().numpy()}


def network_of_fid() -> "torch.nn.Module":
    """torchvision's InceptionV3 with the blocks of pytorch-fid where the two differ, with random weights.

    It is built here because the package builds it only together with a download of the weights. The numbers of channels
    are those of the package.
    """
    from masquerade.networks import torchvision_internals

    torchvision_internals.ensure()
    from pytorch_fid import inception
    from torchvision.models import inception_v3

    network = inception_v3(
        num_classes=CLASSES, aux_logits=False, weights=None, init_weights=False, transform_input=False
    )
    for name, inputs, pooled in (("5b", 192, 32), ("5c", 256, 64), ("5d", 288, 64)):
        setattr(network, f"Mixed_{name}", inception.FIDInceptionA(inputs, pool_features=pooled))
    for name, channels in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        setattr(network, f"Mixed_{name}", inception.FIDInceptionC(768, channels_7x7=channels))
    network.Mixed_7b, network.Mixed_7c = inception.FIDInceptionE_1(1280), inception.FIDInceptionE_2(2048)
    return network
