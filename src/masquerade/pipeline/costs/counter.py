"""Counts the FLOPs and the memory of operations on tensors that have a shape and no values."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

from masquerade.pipeline.costs import torch_internals
from masquerade.pipeline.costs.torch_internals import OpOverload, StorageWeakRef, TorchDispatchMode

META = torch.device("meta")
TOLERANCE = 0.03
"""Relative error of the largest memory. Dead tensors are searched for when the sum exceeds it by this share."""


class Counter(TorchDispatchMode):
    """Counts while the mode is active.

    ``flops``: of matrix products, convolutions and attention, forwards and backwards (a multiply-add is two), by the
    formulas of `torch.utils.flop_counter`. ``now``: bytes of all living tensors. ``most``: the largest `now` so far.

    `FlopCounterMode` of PyTorch is not used: it tracks modules by hooks, which fail with `torch.autograd.grad`.
    """

    def __init__(self):
        super().__init__()
        self.flops = self.most = self._now = 0
        self._storages: dict[int, tuple[StorageWeakRef, int]] = {}
        self._results: dict[tuple, tuple[bool, list]] = {}

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        arguments, options = tuple(_without_values(item) for item in arguments), {**(options or {})}
        on_meta = any(item is META for item in arguments)
        if "device" in options or (torch_internals.makes_tensor(function) and not on_meta):
            options["device"] = META
        if "generator" in options:
            options["generator"] = None
        if function is torch.ops.aten.nonzero.default:
            return arguments[0].new_empty((arguments[0].numel(), arguments[0].ndim), dtype=torch.int64)
        if function is torch.ops.aten.equal.default:
            return True
        if str(function) == "torchvision.nms.default":
            return arguments[0].new_empty(len(arguments[0]), dtype=torch.int64)  # every box stays
        if function is torch.ops.aten.index.Tensor:
            indices = [index for item in arguments[1] for index in _indices(item)]
            arguments = (arguments[0], indices, *arguments[2:])
        formula = torch_internals.flop_formula(function)
        if formula is None and torch_internals.is_composite(function):
            with self:
                return function.decompose(*arguments, **options)
        result = self._result(function, arguments, options)
        if formula is not None:
            self.flops += formula(*arguments, **options, out_val=result)
        for item in result if isinstance(result, tuple | list) else (result,):
            if isinstance(item, Tensor):
                self._add(item.untyped_storage())
        return result

    def _result(self, function: OpOverload, arguments: tuple, options: dict) -> Any:
        """The result of an operation. Shapes of results are kept: the same operation is computed only once."""
        effect = torch_internals.effect(function)
        if effect == "in place":
            return arguments[0]
        if effect == "other":
            return function(*arguments, **options)
        try:
            described = tuple((name, _described(options[name])) for name in options)
            key = function, tuple(map(_described, arguments)), described
            known = self._results.get(key)
        except TypeError:  # an argument that has no hash
            return function(*arguments, **options)
        if known is None:
            result = function(*arguments, **options)
            tensors = result if isinstance(result, tuple) else (result,)
            if all(isinstance(tensor, Tensor) for tensor in tensors):
                layouts = [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in tensors]
                self._results[key] = isinstance(result, tuple), layouts
            return result
        several, layouts = known
        tensors = tuple(
            torch.empty_strided(shape, stride, dtype=dtype, device=META) for shape, stride, dtype in layouts
        )
        return tensors if several else tensors[0]

    def _add(self, storage: torch.UntypedStorage) -> None:
        key = torch_internals.storage_key(storage)
        if key in self._storages:
            return
        size = storage.nbytes()
        self._storages[key] = StorageWeakRef(storage), size
        self._now += size
        if self._now > self.most * (1 + TOLERANCE):
            self.most = max(self.most, self.now)

    @property
    def now(self) -> int:
        """Bytes of all living tensors."""
        for key in [key for key, (storage, _) in self._storages.items() if storage.expired()]:
            self._now -= self._storages.pop(key)[1]
        return self._now


def _without_values(item: Any) -> Any:
    """An argument on the device ``meta``: a tensor of NumPy or of a package's file loses its values."""
    if isinstance(item, torch.device):
        return META
    if isinstance(item, Tensor):
        return item if item.is_meta else torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=META)
    return [_without_values(part) for part in item] if isinstance(item, list | tuple) else item


def _described(item: Any) -> Hashable:
    """All properties of an argument on which the shape of a result depends. Raises TypeError when it has no hash."""
    if isinstance(item, Tensor):
        return item.shape, item.stride(), item.dtype
    return tuple(map(_described, item)) if isinstance(item, list | tuple) else (type(item), item)


def _indices(mask: Tensor | None) -> list[Tensor | None]:
    """The indices that a boolean mask stands for, as if it were true everywhere. Other indices are returned as is."""
    if mask is None or mask.dtype not in (torch.bool, torch.uint8):
        return [mask]
    return [mask.new_empty(mask.numel(), dtype=torch.int64) for _ in range(mask.ndim)]
