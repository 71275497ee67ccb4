"""Brings images to a network (size, range, normalization), and loads and speeds up frozen networks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import to_float, to_uint8

if TYPE_CHECKING:
    import torch

Network = TypeVar("Network", bound="torch.nn.Module")

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The usual normalization of networks that were trained on ImageNet, for RGB in [0, 1]."""
AT_ONCE = 4
"""Images in a batch of `apply_in_batches`, for a network with large maps. The activations fit in the processor's cache,
which is two to three times as fast as batches of 32.
"""
PIXELS_AT_ONCE = 16 * 96 * 96
"""At most so many pixels in a batch of `pictures_at_once`."""


def device() -> "torch.device":
    """The device of every network: the GPU if there is one, prepared for it (`determinism`), otherwise the CPU."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    seeding.prepare_gpu()
    return torch.device("cuda")


def place(network: Network) -> Network:
    """Move a network to `device`, where its input must be, too. Returns it.

    A test runs every method, judge and backbone with a pretended GPU and finds each tensor that lies elsewhere.
    """
    return network.to(device())


def fold_batch_norms(network: Network) -> Network:
    """Merge each batch normalization of a frozen network into the convolution right before it.

    The output stays the same except for rounding, and MobileNetV2 takes half of the time. Do not train the network
    further. Changes ``network`` and returns it.
    """
    from torch.nn import BatchNorm2d, Conv2d, Identity
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    for parent in network.modules():
        for (first, layer), (second, after) in pairwise(list(parent.named_children())):
            if isinstance(layer, Conv2d) and isinstance(after, BatchNorm2d):
                setattr(parent, first, fuse_conv_bn_eval(layer, after))
                setattr(parent, second, Identity())
    return network


def prepare_gradients(network: Network) -> Network:
    """A frozen network, prepared for gradients of its input: `fold_batch_norms`, channels last, and with `FixedPReLU`.

    Output and gradient stay the same except for rounding. Changes ``network`` and returns it.
    """
    import torch

    from masquerade.networks.ir_se import FixedPReLU

    for parent in fold_batch_norms(network).modules():
        for name, layer in list(parent.named_children()):
            if isinstance(layer, torch.nn.PReLU):
                setattr(parent, name, FixedPReLU(layer))
    return network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def apply_in_batches(
    function: Callable[..., Any], size: int, *batch: "np.ndarray | torch.Tensor", as_arrays: bool = False
) -> Any:
    """Apply ``function`` to ``size`` rows of each of ``batch`` at a time, without gradients, and join the results.

    ``function`` gets tensors on `device`; images uint8 (N, H, W, 3) as float32 (N, 3, H, W) in [-1, 1]. With
    ``as_arrays`` it gets the rows as they are, as a judge does, which prepares its images itself. It returns a tensor,
    a sequence of tensors or a dictionary of arrays, with one row for each row of its input. Returns the same, joined;
    tensors on the CPU.
    """
    import torch

    results = []
    with torch.no_grad():
        for start in range(0, max(1, len(batch[0])), size):
            parts = [array[start : start + size] for array in batch]
            results.append(function(*(parts if as_arrays else map(_to_device, parts))))
    if isinstance(results[0], dict):
        return {name: np.concatenate([part[name] for part in results]) for name in results[0]}
    if isinstance(results[0], torch.Tensor):
        return torch.cat([part.cpu() for part in results])
    return [torch.cat([part.cpu() for part in parts]) for parts in zip(*results, strict=True)]


def _to_device(rows: "np.ndarray | torch.Tensor") -> "torch.Tensor":
    import torch

    if isinstance(rows, np.ndarray) and rows.dtype == np.uint8 and rows.ndim == 4:  # images
        rows = to_float(rows)
    return torch.as_tensor(rows).to(device())


def pictures_at_once(side: int) -> int:
    """For `apply_in_batches`: how many images of ``side`` pixels are a quick batch of a network like MobileNetV2.

    Calls take most of the time of a smaller batch; the activations of a larger one do not fit in the processor's cache.
    It is a power of 2, as ``measure.batch`` is: PyTorch prepares each convolution anew for a remainder.
    """
    pictures = PIXELS_AT_ONCE // side**2
    return max(AT_ONCE, (1 << pictures.bit_length()) // 2)


@contextmanager
def zero_for_denormals() -> Iterator[None]:
    """Inside the block the calling thread takes 0 for numbers below 1.2e-38, with which a processor is slow."""
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def to_pixels(images: np.ndarray, side: int) -> list[np.ndarray]:
    """float32 (N, 3, H, W) in [-1, 1] -> N images uint8 RGB (side, side, 3), contiguous.

    An image is first rounded to 8 bits, as in an archive, and then enlarged by cubic or reduced by area interpolation.
    """
    import cv2

    pictures = to_uint8(images)
    if pictures.shape[1:3] == (side, side):
        return list(pictures)
    flag = cv2.INTER_AREA if side < pictures.shape[1] else cv2.INTER_CUBIC
    return [cv2.resize(picture, (side, side), interpolation=flag) for picture in pictures]


def round_to_8_bits(images: "torch.Tensor") -> "torch.Tensor":
    """Images clipped to [-1, 1] and rounded to 8 bits, as their files hold them, with the gradient without rounding."""
    clipped = images.clamp(-1, 1)
    return clipped + (((clipped + 1) * 127.5).round() / 127.5 - 1 - clipped).detach()


def to_tensor(images: np.ndarray, side: int, mean: tuple[float, ...], std: tuple[float, ...]) -> "torch.Tensor":
    """float32 (N, 3, H, W) in [-1, 1] -> tensor (N, 3, side, side) of ([0, 1] image - mean) / std, RGB, on the CPU.

    Resampled by anti-aliased bilinear interpolation, as in torchvision's evaluation transforms.
    """
    import torch

    from masquerade.networks import deterministic

    unit = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)).add(1.0).div(2.0)
    unit = deterministic.resize(unit, (side, side))
    return (unit - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
