"""What replaces the operations that PyTorch cannot differentiate deterministically on a GPU.

In a deterministic process on a GPU, resizing and averaging are products with two matrices: what PyTorch's operation
makes of identity matrices. So the results are the same except for rounding (1e-6). Edges are mirrored by copying.
Everywhere else, PyTorch's operation itself runs.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.training import precision

Operation = Callable[[Tensor, tuple[int, ...]], Tensor]
"""An operation on images (N, C, H, W) for a size (H', W'), linear, and deterministic into rows and columns."""


def resize(images: Tensor, size: tuple[int, ...], mode: str = "bilinear") -> Tensor:
    """(N, C, H, W) -> (N, C, *size), antialiased; as it is if it has that size. ``mode``: bilinear or bicubic."""
    if images.shape[-2:] == size:
        return images
    return _apply(_bicubic if mode == "bicubic" else _bilinear, images, size)


def average(images: Tensor, size: tuple[int, ...]) -> Tensor:
    """(N, C, H, W) -> (N, C, *size): means of areas, PyTorch's adaptive average pooling."""
    return _apply(_area, images, size)


def reflect(images: Tensor, margin: int) -> Tensor:
    """(N, C, H, W) -> (N, C, H + 2 margin, W + 2 margin): mirrored at the edges, whose pixels are not repeated."""
    if not is_replaced(images):
        return functional.pad(images, (margin,) * 4, mode="reflect")
    for axis in (-2, -1):
        before, after = (images.narrow(axis, at, margin) for at in (1, images.shape[axis] - 1 - margin))
        images = torch.cat([before.flip(axis), images, after.flip(axis)], dim=axis)
    return images


class ReflectedConv2d(nn.Conv2d):
    """A convolution with an odd ``kernel`` of images that are `reflect` by half of it.

    Its results and its tensors are those of ``nn.Conv2d(..., padding=kernel // 2, padding_mode="reflect")``.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, bias: bool = True):
        super().__init__(inputs, outputs, kernel, stride, bias=bias)
        self.margin = kernel // 2

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(reflect(input, self.margin))


def is_replaced(images: Tensor) -> bool:
    """Whether the operations of PyTorch are replaced: on a GPU, in a deterministic process."""
    return images.device.type != "cpu" and torch.are_deterministic_algorithms_enabled()


def _apply(operation: Operation, images: Tensor, size: tuple[int, ...]) -> Tensor:
    if not is_replaced(images):
        return operation(images, size)
    dtype = torch.promote_types(images.dtype, torch.float32)
    sides = zip(images.shape[-2:], size, strict=True)
    rows, columns = (_build_matrix(operation, side, new_side, dtype).to(images.device) for side, new_side in sides)
    with precision.without_bfloat16(images.device):
        return (rows @ images.to(dtype) @ columns.T).to(images.dtype)


@lru_cache(maxsize=64)
def _build_matrix(operation: Operation, side: int, new_side: int, dtype: torch.dtype) -> Tensor:
    """The matrix (made, side) of an operation on columns of ``side`` pixels, on the processor."""
    with torch.inference_mode(False), torch.no_grad():
        return operation(torch.eye(side, dtype=dtype, device="cpu")[None, None], (new_side, side))[0, 0]


def _bilinear(images: Tensor, size: tuple[int, ...]) -> Tensor:
    return functional.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True)


def _bicubic(images: Tensor, size: tuple[int, ...]) -> Tensor:
    return functional.interpolate(images, size=size, mode="bicubic", align_corners=False, antialias=True)


def _area(images: Tensor, size: tuple[int, ...]) -> Tensor:
    return functional.interpolate(images, size=size, mode="area")
