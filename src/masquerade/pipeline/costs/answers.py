"""Made-up values for code that reads numbers from tensors that have none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

LARGE = 2**26
"""Bytes. In a larger array all numbers are equal, so that it takes no memory."""


class Answers(TorchFunctionMode):
    """While the mode is active, reading a tensor gives made-up numbers of its shape and type. No condition holds."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        answer = ANSWERS.get(function)
        return function(*arguments, **(options or {})) if answer is None else answer(*arguments)


def _copied(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """Replaces `copy.deepcopy` of a tensor: the one of PyTorch copies values."""
    if id(tensor) not in memo:
        copy = torch.empty_like(tensor)
        memo[id(tensor)] = nn.Parameter(copy, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copy
    return memo[id(tensor)]


def _numbers(tensor: Tensor) -> np.ndarray:
    """Different numbers, so that code which looks for nearest neighbors or for groups finds some."""
    dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    shape = tuple(tensor.shape)
    if tensor.nbytes > LARGE:
        return np.broadcast_to(np.ones((), dtype), shape)  # takes no memory
    if dtype.kind != "f":
        return np.ones(shape, dtype)
    return np.random.default_rng(0).random(shape, np.float32).astype(dtype)


ANSWERS: dict[Callable, Callable] = {
    Tensor.item: lambda tensor: 1.0 if tensor.is_floating_point() else 1,
    Tensor.__float__: lambda _: 1.0,
    Tensor.__int__: lambda _: 1,
    Tensor.__index__: lambda _: 1,
    Tensor.__bool__: lambda _: False,
    Tensor.numpy: lambda tensor: _numbers(tensor),
    Tensor.__array__: lambda tensor, *_: _numbers(tensor),
    Tensor.tolist: lambda tensor: _numbers(tensor).tolist(),
    Tensor.__deepcopy__: _copied,
}
