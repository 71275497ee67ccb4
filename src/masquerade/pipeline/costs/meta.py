"""Runs the pipeline's own code on tensors that have a shape and no values, and counts what it would compute and hold.

The tensors lie on PyTorch's device ``meta``: a forward or backward pass takes no memory and almost no time, whatever
the size of the networks. Checkpoints are kept in memory, as shapes. No weight file is read.
"""

import gc
import logging
import os
import warnings
from collections import Counter as Tally
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from masquerade import assets
from masquerade.backbones.semantics import prompts
from masquerade.core import execution
from masquerade.core.errors import CheckpointError
from masquerade.core.execution import Kind
from masquerade.pipeline.costs import torch_internals
from masquerade.pipeline.costs.answers import Answers
from masquerade.pipeline.costs.counter import Counter
from masquerade.training import checkpoints, weight_files

MOST_KINDS = 4
"""If a loop has more kinds of rounds, only so many of them are run."""
SAVE_EVERY = "MASQUERADE_SAVE_EVERY_SECONDS"


@dataclass
class Cost:
    """What a block of code costs."""

    repeated: int = 0
    """FLOPs of rounds whose number the parameters give (steps of a training)."""
    once: int = 0
    """FLOPs of the rest, which depends on the number of pictures."""
    peak: int = 0
    """Bytes of all tensors at the moment when they are most."""
    kinds: list[tuple[int, int]] = field(default_factory=list)
    """For each kind of round in the last loop: the number of rounds, and the FLOPs of one round."""

    @property
    def flops(self) -> int:
        return self.repeated + self.once


class MetaExecution(ExitStack):
    """A context in which the pipeline's code runs on tensors without values. `counted` gives the cost of a block."""

    def __init__(self):
        super().__init__()
        self._counter = Counter()
        self._repeated, self._inside, self._largest, self._kinds = 0, 0, 0, []
        self._checkpoints: dict[Path, tuple[dict[str, dict[str, Tensor]], dict]] = {}

    def __enter__(self) -> "MetaExecution":
        super().__enter__()
        self.enter_context(quiet())
        self.enter_context(torch_internals.networks_without_values())
        gc.collect()
        gc.freeze()  # existing objects stay: later collections skip them and are faster
        self.callback(gc.unfreeze)
        self.enter_context(execution.replaced(self.replacements()))
        self.enter_context(Answers())
        self.enter_context(torch_internals.files_with_values())
        self.enter_context(self._counter)
        return self

    def replacements(self) -> dict[Callable, Callable]:
        """What the pipeline's code calls -> what it calls here."""
        return {
            execution.rounds: self.rounds,
            execution.parts: self.parts,
            checkpoints.save_checkpoint: self.save_checkpoint,
            checkpoints.load_checkpoint: self.load_checkpoint,
            prompts.refuse_unknown: lambda sentences, tokenizer: None,  # few captions are drawn here
            weight_files.read: lambda path: {},
            weight_files.tensors: lambda content, path, without=None, under="": {},
            weight_files.load: lambda network, given, path: network.eval().requires_grad_(False),
            assets.checked: lambda role, root=Path(): root / assets.path(role),
        }

    @contextmanager
    def counted(self) -> Iterator[Cost]:
        """Yields the cost of the block. Its values are set when the block ends."""
        gc.collect(1)
        cost = Cost()
        before, start = self._counter.flops, self._counter.now
        self._repeated, self._inside, self._largest, self._kinds, self._counter.most = 0, 0, 0, [], start

        yield cost
        cost.repeated, cost.kinds = self._repeated, self._kinds
        cost.once = self._counter.flops - before - self._inside
        cost.peak = max(self._counter.most - start, self._largest - start)

    def rounds(self, count: int, first: int = 0, kind: Kind = execution.alike) -> Iterator[int]:
        """Replaces `execution.rounds`: yields one round of each kind, and counts it once for each round of the kind."""
        rise, kinds = 0, []
        for number, times in representatives(first, count, kind):
            start = self._counter.now
            self._counter.most, most = start, self._counter.most
            with self._multiplied(times, kinds):
                yield number
            rise = max(rise, self._counter.most - start)
            self._counter.most = max(most, self._counter.most)
        self._kinds = kinds
        # later rounds also hold what the first round left: the state of the optimizers
        self._largest = max(self._largest, self._counter.now + rise)

    def parts(self, function: Callable[[Tensor], Any], batch: Tensor, size: int) -> Any:
        """Replaces `execution.parts`: computes the first part alone, and returns tensors with the rows of all parts."""
        with self._multiplied(len(batch) / min(size, len(batch)), []):
            result = function(batch[:size])
        single = isinstance(result, Tensor)
        joined = tuple(part.new_empty(len(batch), *part.shape[1:]) for part in ((result,) if single else result))
        return joined[0] if single else joined

    @contextmanager
    def _multiplied(self, times: float, kinds: list[tuple[int, int]]) -> Iterator[None]:
        """Counts the FLOPs of the block ``times`` times; appends (times, FLOPs of the block) to ``kinds``."""
        before, outer = self._counter.flops, (self._repeated, self._inside)
        yield
        own = self._counter.flops - before
        deeper, inside = self._repeated - outer[0], self._inside - outer[1]  # of loops within this block
        each = own - inside + deeper
        self._repeated = outer[0] + round(each * times)
        self._inside = outer[1] + own
        kinds.append((round(times), each))

    def save_checkpoint(self, path: Path, modules: Mapping[str, nn.Module], facts: Mapping[str, object]) -> None:
        """Replaces `checkpoints.save_checkpoint`: keeps the tensors in memory, and writes a small file for its MD5."""
        tensors = {name: dict(module.state_dict()) for name, module in modules.items()}
        self._checkpoints[Path(path)] = tensors, dict(facts)
        Path(path).write_text(str(path))

    def load_checkpoint(self, path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
        """Replaces `checkpoints.load_checkpoint`: returns what `save_checkpoint` kept, or what a real file holds.

        Raises CheckpointError when there is neither.
        """
        if Path(path) not in self._checkpoints:
            if not Path(path).is_file():
                raise CheckpointError(f"it needs the checkpoint of {Path(path).stem}, which was not counted")
            with torch_internals.values():
                self._checkpoints[Path(path)] = checkpoints.load_checkpoint.__wrapped__(path)  # pyright: ignore[reportFunctionMemberAccess]
        tensors, facts = self._checkpoints[Path(path)]
        return {name: dict(part) for name, part in tensors.items()}, dict(facts)

    def size(self, path: Path) -> int:
        """Bytes of the tensors of a saved checkpoint."""
        tensors, _ = self.load_checkpoint(path)
        return sum(tensor.nbytes for part in tensors.values() for tensor in part.values())


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block no message, warning or progress bar is written, and no training saves its state."""
    with _no_saved_states(), torch_internals.no_progress_bars(), warnings.catch_warnings(action="ignore"):
        logging.disable(logging.WARNING)  # messages about values mean nothing here
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


@contextmanager
def _no_saved_states() -> Iterator[None]:
    """Within the block, no training saves its state, which has no values."""
    before = os.environ.get(SAVE_EVERY)
    os.environ[SAVE_EVERY] = "inf"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAVE_EVERY]
        else:
            os.environ[SAVE_EVERY] = before


def representatives(first: int, count: int, kind: Kind) -> Iterator[tuple[int, float]]:
    """(number, times): the rounds to run, the first one of each kind, and how many rounds each stands for.

    With more than MOST_KINDS kinds, only some are run; the cost of the others is interpolated between the nearest two.
    """
    firsts: dict[Hashable, int] = {}
    numbers: Tally[Hashable] = Tally()
    for number in range(first, count):
        name = kind(number)
        firsts.setdefault(name, number)
        numbers[name] += 1
    counts = np.array([numbers[name] for name in firsts], dtype=float)
    if len(firsts) <= MOST_KINDS:
        yield from zip(firsts.values(), counts.tolist(), strict=True)
        return
    chosen = np.unique(np.linspace(0, len(firsts) - 1, MOST_KINDS).round().astype(int))
    places = np.arange(len(counts))
    shares = np.stack([np.interp(places, chosen, row) for row in np.eye(len(chosen))])  # (chosen, kinds)
    for place, times in zip(chosen, shares @ counts, strict=True):
        yield list(firsts.values())[place], float(times)
