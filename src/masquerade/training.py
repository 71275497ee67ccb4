"""The one training loop: averages, checkpoints, and going on after an interruption bit for bit.

A task draws its batch from the number of the step, not from a stream, so that a resumed training sees exactly what
an uninterrupted one would have seen. Checkpoints are safetensors; the state of an unfinished training is read with
``weights_only=True``: nothing that comes from a file is ever executed.
"""

import copy
import hashlib
import json
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from tqdm import tqdm

from masquerade import distributed, lineage, rehearsal, repeated
from masquerade.errors import CheckpointError, MasqueradeError

logger = logging.getLogger(__name__)

Log = Callable[[int, Mapping[str, float]], None]


class Interrupted(MasqueradeError):
    """The training was asked to stop; its state is saved and the same call goes on from there."""


class Diverged(MasqueradeError):
    """A loss is no longer a number."""


class Task(Protocol):
    """What is trained. ``modules``: all that has weights or buffers to keep; ``optimisers``: who changes them.

    Where it has ``parallel = True``, it may be trained in several processes: see `masquerade.distributed`. Where its
    steps do not all cost the same, ``kind(step)`` tells apart those that do not: see `masquerade.repeated`.
    """

    modules: dict[str, nn.Module]
    optimisers: dict[str, torch.optim.Optimizer]

    def step(self, step: int) -> dict[str, float]:
        """One optimisation step on the batch of this step; returns its losses."""


class Average:
    """Exponential moving average of a module: a <- decay * a + (1 - decay) * w after each step; buffers are copied."""

    def __init__(self, module: nn.Module, decay: float):
        self.source, self.decay = module, decay
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self) -> None:
        for mean, weight in zip(self.module.parameters(), self.source.parameters(), strict=True):
            mean.lerp_(weight, 1.0 - self.decay)
        for mean, buffer in zip(self.module.buffers(), self.source.buffers(), strict=True):
            mean.copy_(buffer)


def fit(
    task: Task,
    *,
    steps: int,
    state: Path,
    fingerprint: str,
    log: Log,
    log_every: int = 20,
    averages: Mapping[str, Average] | None = None,
    after: Callable[[int], None] | None = None,
    save_every_seconds: float | None = None,
) -> None:
    """Train ``task`` for ``steps`` steps, going on from ``state`` where that file is one of the same training.

    ``fingerprint`` names the training (parameters, seed, data); a state with another one, or of other code, is not
    used. ``averages`` are updated after each step. ``after(step)`` is called after each step (for sample pictures).
    Of several processes (`masquerade.distributed`) the first logs, calls ``after`` and saves, and all stop together.
    The state is saved every ``save_every_seconds`` (default 30, or MASQUERADE_SAVE_EVERY_SECONDS) and when the
    process is told to stop; whoever asked for the training removes it in the end. A request to stop goes to whoever
    handles that signal, as submitit, which requeues the job; where nobody does, Interrupted is raised. Raises Diverged,
    naming the loss, where one is not finite, and MasqueradeError where the task is not made for several processes.
    """
    if save_every_seconds is None:
        save_every_seconds = float(os.environ.get("MASQUERADE_SAVE_EVERY_SECONDS", "30"))
    if distributed.count() > 1 and not getattr(task, "parallel", False):
        raise MasqueradeError(
            f"{type(task).__name__} trains in one process, not in {distributed.count()}: set `tasks` to 1 for it "
            "(params.yaml, compute). Which trainings may have several: docs/cluster.md."
        )
    averages = dict(averages or {})
    fingerprint = f"{fingerprint} {_code(task)}"
    first = _resume(task, averages, state, fingerprint)
    distributed.start_together([*task.modules.values(), *(of.module for of in averages.values())], first, state)
    leads = distributed.first()
    bar = tqdm(total=steps, initial=first, mininterval=5, desc="training", **({} if leads else {"disable": True}))
    with _Requests() as requests, bar:
        saved = time.monotonic()
        for step in repeated.rounds(steps, first, getattr(task, "kind", repeated.alike)):
            losses = distributed.mean(task.step(step))
            wrong = [name for name, value in losses.items() if not math.isfinite(value)]
            if wrong:
                raise Diverged(
                    f"the loss {', '.join(wrong)} is {losses[wrong[0]]} at step {step}: lower the learning rate, "
                    "or look at the curves of this run in MLflow"
                )
            for average in averages.values():
                average.update()
            bar.update()
            if leads and (step % log_every == 0 or step == steps - 1):
                log(step, losses)
                bar.set_postfix({name: f"{value:.3f}" for name, value in losses.items()}, refresh=False)
            if leads and after is not None:
                after(step)
            stop = distributed.anywhere(bool(requests))
            if leads and (stop or time.monotonic() - saved >= save_every_seconds):
                _save(task, averages, state, fingerprint, step + 1)
                saved = time.monotonic()
            if stop and not distributed.go_on(requests.handed_on):
                raise Interrupted(f"stopped at step {step + 1} of {steps}; the same command goes on from {state}")


def _code(task: Task) -> str:
    """A digest of the source of the task, its networks, and all that they import: the lineage names one code only."""
    kinds = {type(task), *(type(part) for module in task.modules.values() for part in module.modules())}
    files = {getattr(sys.modules.get(kind.__module__), "__file__", None) for kind in kinds}
    ours = (Path(name) for name in files if name and Path(name).is_relative_to(lineage.SOURCE))
    return hashlib.sha256("".join(map(lineage.fingerprint, lineage.closure(*ours))).encode()).hexdigest()


def _save(task: Task, averages: Mapping[str, Average], state: Path, fingerprint: str, step: int) -> None:
    content = {
        "fingerprint": fingerprint,
        "step": step,
        "modules": {name: module.state_dict() for name, module in task.modules.items()},
        "averages": {name: average.module.state_dict() for name, average in averages.items()},
        "optimisers": {name: optimiser.state_dict() for name, optimiser in task.optimisers.items()},
        "random": torch.get_rng_state(),
    }
    state.parent.mkdir(parents=True, exist_ok=True)
    temporary = state.with_name(f".{state.name}.part")
    torch.save(content, temporary)
    temporary.replace(state)


def _resume(task: Task, averages: Mapping[str, Average], state: Path, fingerprint: str) -> int:
    """Bring everything back to where ``state`` was written; returns the step to go on with."""
    if not state.is_file():
        return 0
    try:
        content = torch.load(state, map_location="cpu", weights_only=True)
        found = content["fingerprint"]
    except Exception as error:  # noqa: BLE001 - torch raises many kinds for a cut or foreign file
        logger.warning("%s cannot be read (%s); the training starts afresh", state, error)
        return 0
    if found != fingerprint:
        logger.warning("%s belongs to a training with other parameters, data or code; this one starts afresh", state)
        return 0
    for name, module in task.modules.items():
        module.load_state_dict(content["modules"][name])
    for name, average in averages.items():
        average.module.load_state_dict(content["averages"][name])
    for name, optimiser in task.optimisers.items():
        optimiser.load_state_dict(content["optimisers"][name])
    torch.set_rng_state(content["random"])
    logger.info("resumed from %s at step %d", state, content["step"])
    return content["step"]


class _Requests:
    """Requests to stop. Inside the block a signal is only remembered, so that a step ends and its state is saved."""

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)  # the last is submitit's: time is up, or pre-empted

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

    def handed_on(self) -> bool:
        """Give each request to the handler that was there before; False where one has none but Python's own."""
        while self._received:
            number = self._received.pop(0)
            handler = self._handlers[number]
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                return False
            handler(number, None)
        return True


def save_checkpoint(path: Path, modules: Mapping[str, nn.Module], facts: Mapping[str, object]) -> None:
    """Write tensors as ``<module>.<key>`` with ``facts`` (JSON) as metadata; the same content gives the same bytes.

    Of several processes that train together the first writes.
    """
    if not distributed.first():
        return
    if counting := repeated.watcher():
        counting.save(path, modules, facts)
        return
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    safetensors.torch.save_file(tensors, temporary, {"masquerade": json.dumps(rehearsal.marked(facts), sort_keys=True)})
    temporary.chmod(0o644)  # the library writes files that nobody else may read; a lab shares its checkpoints
    temporary.replace(path)


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
    """({module: {key: tensor}}, facts).

    Raises CheckpointError naming a file that is missing or damaged, RehearsalError for one of a rehearsal.
    """
    if counting := repeated.watcher():
        return counting.load(path)
    if not Path(path).is_file():
        raise CheckpointError(f"{path} is missing. Train it with `snakemake {path}`, or fetch it with `dvc pull`.")
    tensors: dict[str, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["masquerade"])
            for key in file.keys():  # noqa: SIM118 - not a dict
                module, _, name = key.partition(".")
                tensors.setdefault(module, {})[name] = file.get_tensor(key)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}). Delete it and run `snakemake {path}` again.") from error
    rehearsal.admit(facts, path)
    return tensors, facts


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load strictly: raises CheckpointError naming keys that are missing, left over, or of another shape."""
    wanted = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in tensors.items()}
    wrong = (
        [f"{key} is missing" for key in sorted(wanted.keys() - given.keys())]
        + [f"{key} is left over" for key in sorted(given.keys() - wanted.keys())]
        + [
            f"{key} is {given[key]}, the network has {wanted[key]}"
            for key in sorted(wanted.keys() & given.keys())
            if wanted[key] != given[key]
        ]
    )
    if wrong:
        told = "; ".join(wrong[:4]) + (f"; and {len(wrong) - 4} more" if len(wrong) > 4 else "")
        raise CheckpointError(f"{path} does not fit {type(module).__name__}: {told}.")
    module.load_state_dict(dict(tensors))
