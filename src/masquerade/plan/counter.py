"""Counts what operations on tensors without numbers would have computed and held."""

from collections.abc import Hashable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

META = torch.device("meta")
EXACT = 0.03
"""How exactly the most bytes are known: what died is looked for where this share more seems to be alive."""


class Counter(TorchDispatchMode):
    """``flops`` of matrix products, convolutions and attention, forwards and backwards (a multiply-add is two), by the
    formulas of `torch.utils.flop_counter`; bytes of all tensors that are alive (`now`), and the ``most`` so far.

    FlopCounterMode itself keeps track of modules by hooks, which `torch.autograd.grad` does not bear.
    """

    def __init__(self):
        super().__init__()
        self.flops = self.most = self._now = 0
        self._known: dict[int, tuple[StorageWeakRef, int]] = {}
        self._known_results: dict[tuple, tuple[bool, list]] = {}

    def __torch_dispatch__(self, function, types, given=(), named=None):
        given, named = tuple(_shape(item) for item in given), {**(named or {})}
        if "device" in named or (_makes(function) and not any(item is META for item in given)):
            named["device"] = META
        if "generator" in named:
            named["generator"] = None
        if function is torch.ops.aten.nonzero.default:
            return given[0].new_empty((given[0].numel(), given[0].ndim), dtype=torch.int64)
        if str(function) == "torchvision.nms.default":
            return given[0].new_empty(len(given[0]), dtype=torch.int64)  # every box stays
        if function is torch.ops.aten.index.Tensor:
            given = (given[0], [part for item in given[1] for part in _rows(item)], *given[2:])
        formula = flop_registry.get(function._overloadpacket)
        if formula is None and _composite(function):
            with self:
                return function.decompose(*given, **named)
        made = self._made(function, given, named)
        if formula is not None:
            self.flops += formula(*given, **named, out_val=made)
        for item in made if isinstance(made, tuple | list) else (made,):
            if isinstance(item, Tensor):
                self._see(item.untyped_storage())
        return made

    def _made(self, function: torch._ops.OpOverload, given: tuple, named: dict) -> Any:
        """What an operation returns. What it once made of the same shapes is made again without asking how."""
        nature = _nature(function)
        if nature == "in place":
            return given[0]
        if nature == "other":
            return function(*given, **named)
        try:
            key = function, tuple(map(_described, given)), tuple((name, _described(named[name])) for name in named)
            known = self._known_results.get(key)
        except TypeError:  # an argument that has no hash
            return function(*given, **named)
        if known is None:
            made = function(*given, **named)
            parts = made if isinstance(made, tuple) else (made,)
            if all(isinstance(part, Tensor) for part in parts):
                self._known_results[key] = isinstance(made, tuple), [(p.shape, p.stride(), p.dtype) for p in parts]
            return made
        several, parts = known
        made = tuple(torch.empty_strided(shape, stride, dtype=kind, device=META) for shape, stride, kind in parts)
        return made if several else made[0]

    def _see(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self._known:
            return
        size = storage.nbytes()
        self._known[storage._cdata] = StorageWeakRef(storage), size
        self._now += size
        if self._now > self.most * (1 + EXACT):
            self.most = max(self.most, self.now)

    @property
    def now(self) -> int:
        """Bytes that are alive."""
        for key in [key for key, (storage, _) in self._known.items() if storage.expired()]:
            self._now -= self._known.pop(key)[1]
        return self._now


def _shape(item: Any) -> Any:
    """A tensor with numbers (of NumPy, or of a file inside a package) as one without."""
    if isinstance(item, torch.device):
        return META
    if isinstance(item, Tensor):
        return item if item.is_meta else torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=META)
    return [_shape(one) for one in item] if isinstance(item, list | tuple) else item


def _described(item: Any) -> Hashable:
    """An argument by all that the shape of a result may depend on. Raises TypeError where it has no hash."""
    if isinstance(item, Tensor):
        return item.shape, item.stride(), item.dtype
    return tuple(map(_described, item)) if isinstance(item, list | tuple) else (type(item), item)


@cache
def _nature(function: torch._ops.OpOverload) -> str:
    """``in place``: returns its first argument, changed in nothing but numbers; ``fresh``: new tensors; ``other``."""
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


@cache
def _makes(function: torch._ops.OpOverload) -> bool:
    """Whether an operation makes a tensor on a device that it is told."""
    return any(argument.name == "device" for argument in function._schema.arguments)


@cache
def _composite(function: torch._ops.OpOverload) -> bool:
    """Whether an operation is made of others, among which there may be some that count."""
    return function.namespace == "aten" and function._can_decompose()


def _rows(mask: Tensor | None) -> list[Tensor | None]:
    """The indices that a mask stands for, as if it held for every element."""
    if mask is None or mask.dtype not in (torch.bool, torch.uint8):
        return [mask]
    return [mask.new_empty(mask.numel(), dtype=torch.int64) for _ in range(mask.ndim)]
