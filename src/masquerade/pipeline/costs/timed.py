"""Runs the pipeline's own code on this machine with random weights, and measures one step of each training.

Where the plan (`masquerade.pipeline.costs.meta`) counts on tensors without values, this computes. It also runs few
rounds of each loop, keeps checkpoints in memory, and reads no file of weights.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from masquerade.core import execution
from masquerade.core.execution import Kind
from masquerade.networks.inputs import device
from masquerade.pipeline.costs import torch_internals
from masquerade.pipeline.costs.meta import Cost, MetaExecution, quiet, representatives
from masquerade.pipeline.costs.torch_internals import OpOverload, TorchDispatchMode
from masquerade.training import loop

ROUNDS = 3
"""Rounds of each kind of which the seconds are measured, after one that counts and one that warms up."""


@dataclass
class Timed(Cost):
    """What a block of code took. `peak` is 0 without a GPU."""

    rounds: float = 0.0
    """Number of rounds of all loops, as the parameters give it."""
    seconds: float = 0.0
    """Of all these rounds."""


class FlopCounter(TorchDispatchMode):
    """Counts FLOPs as `masquerade.pipeline.costs.counter` does, while the operations are computed."""

    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, function: OpOverload, types: Any, arguments: tuple = (), options: Any = None) -> Any:
        options = options or {}
        formula = torch_internals.flop_formula(function)
        if formula is None and torch_internals.is_composite(function):
            with self:
                return function.decompose(*arguments, **options)
        result = function(*arguments, **options)
        if formula is not None:
            self.flops += formula(*arguments, **options, out_val=result)
        return result


class TimedExecution(MetaExecution):
    """A context in which the pipeline's code runs with random weights. `counted` measures a block."""

    def __init__(self):
        super().__init__()
        self._result, self._counting, self._inside_round = Timed(), ExitStack(), False

    def __enter__(self) -> "TimedExecution":
        ExitStack.__enter__(self)
        self.enter_context(quiet())
        self.enter_context(execution.replaced(self.replacements()))
        # losses of random networks may be no numbers, which changes no time
        self.enter_context(torch_internals.replaced(loop, "math", SimpleNamespace(isfinite=lambda _: True)))
        return self

    @contextmanager
    def counted(self) -> Iterator[Cost]:
        """Yields a `Timed` of the block. Its values grow with each loop."""
        self._result, self._inside_round = Timed(), False
        gc.collect()
        if device().type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            yield self._result
        finally:
            self._counting.close()  # an error in a counted round leaves it open
        if device().type == "cuda":
            self._result.peak = torch.cuda.max_memory_allocated()

    def rounds(self, count: int, first: int = 0, kind: Kind = execution.alike) -> Iterator[int]:
        """Replaces `execution.rounds`: yields some rounds of each kind. A loop within a round runs whole."""
        if self._inside_round:
            yield from range(first, count)
            return
        self._inside_round = True
        for number, times in representatives(first, count, kind):
            counter = self._counting.enter_context(FlopCounter())
            yield number
            self._counting.close()
            yield number
            start = _now()
            for _ in range(ROUNDS):
                yield number
            self._result.seconds += times * (_now() - start) / ROUNDS
            self._result.repeated += round(times * counter.flops)
            self._result.rounds += times
            self._result.kinds.append((round(times), counter.flops))
        self._inside_round = False

    def parts(self, function: Callable[[Tensor], Any], batch: Tensor, size: int) -> Any:
        """Replaces `execution.parts`: outside of rounds it computes the first part, and repeats its rows."""
        if self._inside_round:
            return computed(function, batch, size)
        result = function(batch[:size])
        rows = torch.arange(len(batch)) % min(size, len(batch))
        return result[rows] if isinstance(result, Tensor) else tuple(part[rows] for part in result)

    def save_checkpoint(self, path: Path, modules: Mapping[str, nn.Module], facts: Mapping[str, object]) -> None:
        """Replaces `checkpoints.save_checkpoint`: keeps the values on the processor."""
        super().save_checkpoint(path, modules, facts)
        tensors, kept = self._checkpoints[Path(path)]
        self._checkpoints[Path(path)] = {name: _copied(part) for name, part in tensors.items()}, kept


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.detach().cpu().clone() for key, value in tensors.items()}


def computed(function: Callable[[Tensor], Any], batch: Tensor, size: int) -> Any:
    """`execution.parts` as it is outside of a plan."""
    return execution.parts.__wrapped__(function, batch, size)  # pyright: ignore[reportFunctionMemberAccess]


def _now() -> float:
    """The time when all that was given to the device is done."""
    if device().type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
