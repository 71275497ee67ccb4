"""The training loop of every backbone and method: weight averages, logs, and exact resumption after an interruption.

A task draws its batch from the number of the step and not from a stream, so a resumed training uses the same batches as
an uninterrupted one. The state of an unfinished training is read with ``weights_only=True``, so no code from a file is
executed.
"""

import copy
import hashlib
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import nn
from tqdm import tqdm

from masquerade.core import files, fingerprints
from masquerade.core.errors import MasqueradeError
from masquerade.training import distributed, precision
from masquerade.training.settings import Arithmetic

logger = logging.getLogger(__name__)

Log = Callable[[int, Mapping[str, float]], None]
Network = TypeVar("Network", bound=nn.Module)
LOG_EVERY = 20
"""Steps between two entries of the log."""


class Interrupted(MasqueradeError):
    """A signal stopped the training. Its state is saved, and the same call resumes it."""


class Diverged(MasqueradeError):
    """A loss is no longer a number."""


class Stateful(Protocol):
    """An optimizer, or several: something whose state the loop saves and restores."""

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state_dict: dict, /) -> object: ...


class Task(Protocol):
    """What is trained. ``modules`` have all weights and buffers to keep, ``optimizers`` all optimizers with a state.

    A task with ``parallel = True`` can be trained in several processes (`masquerade.training.distributed`). A task with
    ``own_precision = True`` computes parts of a step with bfloat16 (`precision.use_bfloat16`), and not the whole step.
    """

    @property
    def modules(self) -> Mapping[str, nn.Module]: ...

    @property
    def optimizers(self) -> Mapping[str, Stateful]: ...

    def step(self, step: int) -> dict[str, float]:
        """Take one optimization step on the batch of this step; returns name -> loss."""
        ...


class Average(Generic[Network]):
    """The exponential moving average of a module: a <- decay * a + (1 - decay) * w after each step.

    Buffers are copied.
    """

    def __init__(self, module: Network, decay: float):
        self.source, self.decay = module, decay
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self) -> None:
        for mean, weight in zip(self.module.parameters(), self.source.parameters(), strict=True):
            mean.lerp_(weight, 1.0 - self.decay)
        for mean, buffer in zip(self.module.buffers(), self.source.buffers(), strict=True):
            mean.copy_(buffer)


@dataclass(frozen=True)
class Unfinished:
    """Where an unfinished training is saved, so that the same call resumes it.

    ``fingerprint`` identifies the training (parameters, seed, data). A file with another fingerprint, or of other code,
    is ignored.
    """

    state: Path
    fingerprint: str


def fit(
    task: Task,
    steps: int,
    unfinished: Unfinished,
    log: Log,
    *,
    averages: Mapping[str, Average] | None = None,
    after: Callable[[int], None] | None = None,
    arithmetic: Arithmetic | None = None,
) -> None:
    """Train ``task`` for ``steps`` steps; resumes from ``unfinished`` if that is of the same training.

    ``log`` gets the losses of every `LOG_EVERY`-th step and of the last. ``averages`` are updated after each step, and
    then ``after(step)`` is called, for sample images. Of several processes (`masquerade.training.distributed`) the
    first logs, calls ``after`` and saves. All stop together. ``arithmetic``: how the networks compute in a step.

    The state is saved every 30 seconds (or MASQUERADE_SAVE_EVERY_SECONDS) and when a signal requests a stop. The caller
    removes the file when the training is complete. After a request to stop, the earlier handler of the signal is called
    (submitit's requeues the job). If that was Python's own, Interrupted is raised.

    Raises Diverged, with the name of the loss, if a loss is not finite, and MasqueradeError if there are several
    processes and the task supports one.
    """
    save_every_seconds = float(os.environ.get("MASQUERADE_SAVE_EVERY_SECONDS", "30"))
    if distributed.count_processes() > 1 and not getattr(task, "parallel", False):
        raise MasqueradeError(
            f"{type(task).__name__} trains in one process, not in {distributed.count_processes()}. Set `tasks` to 1 "
            "for it (params.yaml, compute). docs/cluster.md lists the trainings that can have several processes."
        )
    averages = dict(averages or {})
    state, fingerprint = unfinished.state, f"{unfinished.fingerprint} {hash_code(task)}"
    first = _resume(task, averages, state, fingerprint)
    distributed.start_together([*task.modules.values(), *(of.module for of in averages.values())], first, state)
    is_first, device = distributed.is_first(), _device(task)
    precision.prepare_networks(task.modules.values(), arithmetic)
    options: dict[str, Any] = {} if is_first else {"disable": True}
    bar = tqdm(total=steps, initial=first, mininterval=5, desc="training", **options)
    with _Requests() as requests, bar:
        saved = time.monotonic()
        for step in range(first, steps):
            with precision.use_arithmetic(arithmetic, device, own=hasattr(task, "own_precision")):
                losses = task.step(step)
            losses = distributed.average_losses(losses)
            infinite = [name for name, value in losses.items() if not math.isfinite(value)]
            if infinite:
                raise Diverged(
                    f"the loss {', '.join(infinite)} is {losses[infinite[0]]} at step {step}: lower the learning rate, "
                    "or look at the curves of this run in MLflow"
                )
            for average in averages.values():
                average.update()
            bar.update()
            if is_first and (step % LOG_EVERY == 0 or step == steps - 1):
                log(step, losses)
                bar.set_postfix({name: f"{value:.3f}" for name, value in losses.items()}, refresh=False)
            if is_first and after is not None:
                after(step)
            stop = distributed.any_process(bool(requests))
            if is_first and (stop or time.monotonic() - saved >= save_every_seconds):
                _save(task, averages, state, fingerprint, step + 1)
                saved = time.monotonic()
            if stop and not distributed.all_continue(requests.hand_on):
                raise Interrupted(f"stopped at step {step + 1} of {steps}; the same command resumes from {state}")


def _device(task: Task) -> torch.device:
    weights = (weight for module in task.modules.values() for weight in module.parameters())
    return next(weights, torch.empty(0)).device


def hash_code(task: Task) -> str:
    """A digest of the code of the task, its networks and all that they import, so that no training mixes two codes."""
    tasks = (task, *getattr(task, "tasks", ()))
    kinds = {*map(type, tasks), *(type(part) for module in task.modules.values() for part in module.modules())}
    modules = {getattr(sys.modules.get(kind.__module__), "__file__", None) for kind in kinds}
    ours = (Path(name) for name in modules if name and Path(name).is_relative_to(fingerprints.SOURCE))
    return hashlib.sha256("".join(map(fingerprints.fingerprint, fingerprints.find_closure(*ours))).encode()).hexdigest()


def _save(task: Task, averages: Mapping[str, Average], state: Path, fingerprint: str, step: int) -> None:
    content = {
        "fingerprint": fingerprint,
        "step": step,
        "modules": {name: module.state_dict() for name, module in task.modules.items()},
        "averages": {name: average.module.state_dict() for name, average in averages.items()},
        "optimizers": {name: optimizer.state_dict() for name, optimizer in task.optimizers.items()},
        "random": _random_states(),
    }
    with files.write_atomically(state) as temporary:
        torch.save(content, temporary)


def _random_states() -> dict[str, torch.Tensor]:
    """The states of PyTorch's random numbers, on the processor and on the GPU of this process."""
    states = {"cpu": torch.get_rng_state()}
    return states | ({"gpu": torch.cuda.get_rng_state()} if torch.cuda.is_initialized() else {})


def _resume(task: Task, averages: Mapping[str, Average], state: Path, fingerprint: str) -> int:
    """Restore what ``state`` holds; returns the step to resume with, or 0 if the state cannot be used."""
    if not state.is_file():
        return 0
    try:
        content = torch.load(state, map_location="cpu", weights_only=True)
        saved_fingerprint = content["fingerprint"]
    except Exception as error:  # noqa: BLE001 - torch raises many kinds for a cut or foreign file
        logger.warning("%s cannot be read (%s); the training starts again from step 0", state, error)
        return 0
    if saved_fingerprint != fingerprint:
        logger.warning("%s is of other parameters, data or code; the training starts again from step 0", state)
        return 0
    for name, module in task.modules.items():
        module.load_state_dict(content["modules"][name])
    for name, average in averages.items():
        average.module.load_state_dict(content["averages"][name])
    for name, optimizer in task.optimizers.items():
        optimizer.load_state_dict(content["optimizers"][name])
    torch.set_rng_state(content["random"]["cpu"])
    if "gpu" in content["random"] and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(content["random"]["gpu"])
    logger.info("resumed from %s at step %d", state, content["step"])
    return content["step"]


class _Requests:
    """Requests to stop. Inside the block a signal is only recorded, so that the step ends and its state is saved."""

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)  # submitit sends the last: time limit or pre-emption

    def __init__(self):
        self._received: list[int] = []
        self._handlers = {}

    def __enter__(self) -> "_Requests":
        for number in self.signals:
            handler = signal.getsignal(number)
            if handler in (signal.SIG_IGN, None) or (handler == signal.SIG_DFL and number == signal.SIGUSR2):
                continue
            try:
                signal.signal(number, lambda number, frame: self._received.append(number))
            except ValueError:  # only the main thread may handle signals
                break
            self._handlers[number] = handler
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        return bool(self._received)

    def hand_on(self) -> bool:
        """Call the earlier handler of each recorded signal; False if a signal had only Python's own handler."""
        while self._received:
            number = self._received.pop(0)
            handler = self._handlers[number]
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                return False
            handler(number, None)
        return True
