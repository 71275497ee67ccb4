"""What the cost estimate uses of PyTorch beyond its public interface, and what it replaces there, in one place.

``tests/unit/test_torch_internals.py`` fails when an installed PyTorch differs from VERSION in these parts.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partialmethod
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import optimizer  # pyright: ignore[reportAttributeAccessIssue]
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.flop_counter import flop_registry
from tqdm import tqdm

__all__ = ["OpOverload", "StorageWeakRef", "TorchDispatchMode"]

VERSION = "2.13.0"
"""The version of PyTorch for which this module is written."""


@contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """Within the block, the attribute ``name`` of a module or class is ``value``."""
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def networks_without_values() -> Iterator[None]:
    """Within the block, networks stay on the device ``meta``, and optimizers work on them as they do on a GPU."""
    with ExitStack() as stack:
        stack.enter_context(replaced(nn.Module, "to", _unmoved))
        stack.enter_context(replaced(nn.Module, "load_state_dict", _unloaded))
        # optimizers update all weights in a few operations, as on a GPU
        stack.enter_context(replaced(optimizer, "_get_foreach_kernels_supported_devices", lambda: ["meta"]))
        stack.enter_context(replaced(torch.cuda, "is_available", lambda: False))
        yield


@contextmanager
def files_with_values() -> Iterator[None]:
    """Within the block, `torch.load` reads values although a dispatch mode is active.

    Some packages read their own network when they are imported.
    """
    load = torch.load

    def load_without_modes(*arguments: Any, **options: Any) -> Any:
        with values():
            return load(*arguments, **options)

    with replaced(torch, "load", load_without_modes):
        yield


def values() -> AbstractContextManager:
    """A block in which tensors have values although a dispatch mode is active."""
    return _disable_current_modes()


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Within the block, tqdm shows no progress bar."""
    with replaced(tqdm, "__init__", partialmethod(tqdm.__init__, disable=True)):
        yield


def _unmoved(module: nn.Module, *_: object, **__: object) -> nn.Module:
    """Replaces `nn.Module.to`: the device and the memory layout change no cost."""
    return module


def _unloaded(module: nn.Module, *_: object, **__: object) -> None:
    """Replaces `nn.Module.load_state_dict`: there are no values. `checkpoints.load_into` has compared the shapes."""


def storage_key(storage: torch.UntypedStorage) -> int:
    """A number that no other living storage has."""
    return storage._cdata


def flop_formula(function: OpOverload) -> Callable[..., int] | None:
    """PyTorch's formula for the FLOPs of an operation; None when it has none."""
    return flop_registry.get(function._overloadpacket)


@cache
def is_composite(function: OpOverload) -> bool:
    """Whether an operation consists of other operations, some of which may have a formula for their FLOPs."""
    return function.namespace == "aten" and function._can_decompose()


@cache
def makes_tensor(function: OpOverload) -> bool:
    """Whether an operation has an argument ``device`` and makes a tensor there."""
    return any(argument.name == "device" for argument in function._schema.arguments)


@cache
def effect(function: OpOverload) -> str:
    """What an operation returns.

    ``in place``: its first argument, with the same shape; ``fresh``: new tensors, which depend only on the shapes of
    the arguments; ``other``: views, random values, or anything else.
    """
    schema = function._schema
    if torch.Tag.inplace_view in function.tags or function is torch.ops.aten._unsafe_view.default:
        return "other"
    if schema.is_mutable:
        first = schema.arguments[0].alias_info
        alone = sum(argument.alias_info is not None for argument in schema.arguments) == 1
        plain = str(schema.arguments[0].type) == "Tensor" and len(schema.returns) == 1
        return "in place" if first is not None and first.is_write and alone and plain else "other"
    aliased = any(part.alias_info is not None for part in (*schema.arguments, *schema.returns))
    return "other" if aliased or torch.Tag.nondeterministic_seeded in function.tags else "fresh"
