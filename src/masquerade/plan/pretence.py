"""The pipeline's own code on tensors that have shapes and no numbers, and what it would have computed and held.

All of them lie on PyTorch's device ``meta``: a forward or backward pass costs no memory and next to no time, whatever
the size of the networks. Checkpoints are kept in memory, as shapes; no weight file of a backbone is needed.
"""

import gc
import logging
import os
import warnings
from collections import Counter as Tally
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from tqdm import tqdm

from masquerade import repeated
from masquerade.errors import CheckpointError
from masquerade.plan.counter import Counter
from masquerade.repeated import Kind

LARGE = 2**26
"""Bytes of numbers above which they are all the same, and take no memory."""


MOST = 4
"""So many kinds of rounds are done; of more, some."""


@dataclass
class Bill:
    """What a block of code costs."""

    repeated: int = 0
    """FLOPs of what is done so often as the parameters say (steps of a training)."""
    once: int = 0
    """FLOPs of the rest, which depends on how many pictures there are."""
    peak: int = 0
    """Bytes of all tensors at the moment when there are most of them."""
    kinds: list[tuple[int, int]] = field(default_factory=list)
    """Of each kind of round of the last loop: how many there are, and FLOPs of one."""

    @property
    def flops(self) -> int:
        return self.repeated + self.once


class Pretence(ExitStack):
    """A context in which the pipeline's code runs without numbers; `counted` says what a part of it costs."""

    def __init__(self):
        super().__init__()
        self._counter = Counter()
        self._repeated, self._inside, self._risen, self._kinds = 0, 0, 0, []
        self._kept: dict[Path, tuple[dict[str, dict[str, Tensor]], dict]] = {}

    def __enter__(self) -> "Pretence":
        super().__enter__()
        self.enter_context(mock.patch.dict(os.environ, {"MASQUERADE_SAVE_EVERY_SECONDS": "inf"}))
        self.enter_context(mock.patch.object(tqdm, "__init__", partialmethod(tqdm.__init__, disable=True)))
        logging.disable(logging.WARNING)  # what is said of numbers
        self.callback(logging.disable, logging.NOTSET)
        self.enter_context(warnings.catch_warnings(action="ignore"))
        self.enter_context(mock.patch.object(nn.Module, "to", _stays))
        self.enter_context(mock.patch.object(nn.Module, "load_state_dict", _keeps))
        # as on a GPU: all weights in few operations
        self.enter_context(mock.patch.object(optimizer, "_get_foreach_kernels_supported_devices", lambda: ["meta"]))
        self.enter_context(mock.patch.object(torch.cuda, "is_available", lambda: False))
        gc.collect()
        gc.freeze()  # what was there before: it need not be looked at again and again
        self.callback(gc.unfreeze)
        self.enter_context(repeated.watched(self))
        self.enter_context(_Answers())
        self.enter_context(mock.patch.object(torch, "load", _real(torch.load)))
        self.enter_context(self._counter)
        return self

    @contextmanager
    def counted(self) -> Iterator[Bill]:
        """What the block costs, known when it has ended."""
        gc.collect(1)
        bill = Bill()
        before, start = self._counter.flops, self._counter.now
        self._repeated, self._inside, self._risen, self._kinds, self._counter.most = 0, 0, 0, [], start

        yield bill
        bill.repeated, bill.kinds = self._repeated, self._kinds
        bill.once = self._counter.flops - before - self._inside
        bill.peak = max(self._counter.most - start, self._risen - start)

    def rounds(self, first: int, count: int, kind: Kind) -> Iterator[int]:
        rise, found = 0, []
        for number, times in _shares(first, count, kind):
            start = self._counter.now
            self._counter.most, most = start, self._counter.most
            with self._multiplied(times, found):
                yield number
            rise = max(rise, self._counter.most - start)
            self._counter.most = max(most, self._counter.most)
        self._kinds = found
        # in later rounds there is also what the first one left: the state of the optimisers
        self._risen = max(self._risen, self._counter.now + rise)

    def parts(self, function, batch: Tensor, size: int) -> Any:
        """The first part alone, its result as long as all parts'."""
        with self._multiplied(len(batch) / min(size, len(batch)), []):
            found = function(batch[:size])
        alone = isinstance(found, Tensor)
        full = tuple(part.new_empty(len(batch), *part.shape[1:]) for part in ((found,) if alone else found))
        return full[0] if alone else full

    @contextmanager
    def _multiplied(self, times: float, found: list[tuple[int, int]]) -> Iterator[None]:
        """What the block computes counts so many times; ``found`` gets how many, and the FLOPs of one."""
        before, known = self._counter.flops, (self._repeated, self._inside)
        yield
        own = self._counter.flops - before
        deeper, inside = self._repeated - known[0], self._inside - known[1]  # of rounds in this round
        each = own - inside + deeper
        self._repeated = known[0] + round(each * times)
        self._inside = known[1] + own
        found.append((round(times), each))

    def save(self, path: Path, modules: Mapping[str, nn.Module], facts: Mapping[str, object]) -> None:
        tensors = {name: dict(module.state_dict()) for name, module in modules.items()}
        self._kept[Path(path)] = tensors, dict(facts)
        Path(path).write_text(str(path))  # what its MD5 is taken of

    def load(self, path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
        if Path(path) not in self._kept:
            raise CheckpointError(f"nothing is known of {Path(path).stem}, which it is built on")
        tensors, facts = self._kept[Path(path)]
        return {name: dict(part) for name, part in tensors.items()}, dict(facts)

    def size(self, path: Path) -> int:
        """Bytes of the tensors of a checkpoint that was saved."""
        tensors, _ = self.load(path)
        return sum(tensor.nbytes for part in tensors.values() for tensor in part.values())


def _shares(first: int, count: int, kind: Kind) -> Iterator[tuple[int, float]]:
    """The rounds that are done, and how many each stands for: the first one of each kind.

    Where there are more than MOST kinds, some of them, and the others are taken from their neighbours, linearly.
    """
    firsts: dict[Hashable, int] = {}
    numbers: Tally[Hashable] = Tally()
    for number in range(first, count):
        of = kind(number)
        firsts.setdefault(of, number)
        numbers[of] += 1
    done = np.unique(np.linspace(0, len(firsts) - 1, MOST).round().astype(int)) if len(firsts) > MOST else None
    every = np.array([numbers[of] for of in firsts], dtype=float)
    if done is None:
        yield from zip(firsts.values(), every.tolist(), strict=True)
        return
    places = np.arange(len(every))
    near = np.stack([np.interp(places, done, row) for row in np.eye(len(done))])  # (done, kinds)
    for place, times in zip(done, near @ every, strict=True):
        yield list(firsts.values())[place], float(times)


def _stays(module: nn.Module, *_: object, **__: object) -> nn.Module:
    """`nn.Module.to`: device and memory layout change no count."""
    return module


def _keeps(module: nn.Module, *_: object, **__: object) -> None:
    """`nn.Module.load_state_dict`: no numbers are there; `masquerade.training.load_into` knows the shapes."""


def _real(load: Callable) -> Callable:
    """`torch.load`, which reads numbers where a package brings a network along: only in what follows are they lost."""

    def read(*given: Any, **named: Any) -> Any:
        with _disable_current_modes():
            return load(*given, **named)

    return read


class _Answers(TorchFunctionMode):
    """Answers what only a tensor with numbers could: any numbers, of the right shape and type; no condition holds."""

    def __torch_function__(self, function, types, given=(), named=None):
        answer = ANSWERS.get(function)
        return function(*given, **(named or {})) if answer is None else answer(*given)


def _copied(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """`copy.deepcopy` of a tensor; PyTorch's own would copy numbers from where there are none."""
    if id(tensor) not in memo:
        made = torch.empty_like(tensor)
        memo[id(tensor)] = nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else made
    return memo[id(tensor)]


def _numbers(tensor: Tensor) -> np.ndarray:
    """Any numbers: different ones, so that who looks for the nearest or for groups finds some."""
    kind = np.dtype(str(tensor.dtype).removeprefix("torch."))
    shape = tuple(tensor.shape)
    if tensor.nbytes > LARGE:
        return np.broadcast_to(np.ones((), kind), shape)  # takes no memory
    if kind.kind != "f":
        return np.ones(shape, kind)
    return np.random.default_rng(0).random(shape, np.float32).astype(kind)


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
    torch.equal: lambda *_: True,
}
