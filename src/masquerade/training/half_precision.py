"""Weight files in half precision: checkpoints with their parameters as 16-bit floats, buffers and integers exact."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from masquerade.core.errors import CheckpointError
from masquerade.training import checkpoints

LARGEST = torch.finfo(torch.float16).max
"""The largest number that a 16-bit float holds: 65504."""
MOST_LOSS = 0.001
"""A `loss` that the rounding of numbers above 0.0001 does not reach: for these it is at most 2^-11, or 0.0005."""


def rounded(tensors: Mapping[str, Tensor], buffers: Collection[str], path: Path) -> dict[str, Tensor]:
    """The tensors of the checkpoint at ``path``: 32-bit parameters as 16-bit floats, all others as they are.

    ``buffers``: names of the tensors that are no parameters. A parameter whose numbers are too small for 16 bits (its
    `loss` is above MOST_LOSS) keeps its 32 bits. Raises CheckpointError naming a tensor with a value that is not finite
    or that no 16-bit float can hold.
    """
    result = {}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: {name} holds values that are not numbers. Train it again.")
        if tensor.dtype != torch.float32 or name in buffers:
            result[name] = tensor
            continue
        largest = tensor.abs().max().item() if tensor.numel() else 0.0
        if largest > LARGEST:
            raise CheckpointError(
                f"{path}: {name} holds {largest:.6g}, and a 16-bit float holds at most {LARGEST:g}. Such a weight is a "
                "sign of a training that diverged: look at its curves, and train it again with a lower learning rate."
            )
        half = tensor.half()
        result[name] = half if loss([tensor], [half]) <= MOST_LOSS else tensor
    return result


def loss(before: Iterable[Tensor], after: Iterable[Tensor]) -> float:
    """The root mean square of the rounding error of tensors, relative to that of their numbers; 0 without numbers."""
    pairs = [(one.double(), other.double()) for one, other in zip(before, after, strict=True)]
    error = sum(((other - one).square().sum().item() for one, other in pairs), 0.0)
    size = sum((one.square().sum().item() for one, _ in pairs), 0.0)
    return (error / size) ** 0.5 if size else 0.0


def read(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Returns (tensors by name, facts). 16-bit floats come back with 32 bits. Raises CheckpointError."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["masquerade"])
            facts.pop(checkpoints.BUFFERS, None)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as reason:
        raise CheckpointError(
            f"{path} cannot be read as a weight file ({reason}). Restore it with `git checkout -- {path.parent.name}`."
        ) from reason
    return {name: _widened(tensor) for name, tensor in tensors.items()}, facts


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.float16 else tensor
