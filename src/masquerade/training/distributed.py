"""One training in several processes: each computes its rows of every batch, and all take the same step.

In every process a task draws the whole batch of a step, which depends only on the seed and the number of the step, and
keeps its own rows (`select_rows`). Before each update, `average_gradients` replaces the gradients by their mean over
the processes. The result is that of one process with the same batch, except for the order in which floats are added.
In a single process every function of this module does nothing. docs/cluster.md lists the trainings that can run in
several processes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist

from masquerade.core import process
from masquerade.core.errors import MasqueradeError, ParameterError

PATIENCE = timedelta(minutes=30)
"""How long to wait for the slowest process: only one of them draws samples, and decoding takes different times."""

Batch = TypeVar("Batch", Tensor, np.ndarray)


class ProcessLost(MasqueradeError):
    """Another process of the same training has ended or does not answer."""


@contextmanager
def join_processes() -> Iterator[bool]:
    """Join the other processes of this training for the block, by NCCL on GPUs and gloo elsewhere.

    Yields whether this process has rank 0; only that one writes the checkpoint. All leave the block together, after it
    is written. Each process uses the GPU of its local rank. Raises ProcessLost if the others do not join.
    """
    place = process.find_current()
    if place.count == 1:
        yield True
        return
    gpus = torch.cuda.device_count()
    if gpus:
        torch.cuda.set_device(place.local_rank % gpus)  # gpus is 1 if SLURM shows each task only its own GPU
    with _name_lost():
        dist.init_process_group(
            "nccl" if gpus else "gloo", init_method=f"tcp://{place.address}:{place.port}", timeout=PATIENCE,
            rank=place.rank, world_size=place.count,
        )  # fmt: skip
    yield place.rank == 0
    any_process(False)  # a barrier; not after an error, because it would wait for a process that has ended
    dist.destroy_process_group()


def count_processes() -> int:
    """The number of processes of this training."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process has rank 0, which alone logs, draws samples and writes files."""
    return not dist.is_initialized() or dist.get_rank() == 0


def select_rows(whole: Batch) -> Batch:
    """This process's rows of a whole batch: every n-th row of n processes, beginning with its rank.

    Rows whose distance is a multiple of n stay in one process. So every process gets half of its rows from the first
    half of a batch, and whole groups of the minibatch standard deviation; contiguous shares would not do this.
    """
    return whole[dist.get_rank() :: count_processes()] if dist.is_initialized() else whole


def draw_normal(number: int, *shape: int, like: Tensor) -> Tensor:
    """Standard normal numbers (number, *shape): this process's rows of the numbers that one would draw."""
    return select_rows(torch.randn(number * count_processes(), *shape, device=like.device, dtype=like.dtype))


def check_batch(batch: int, knob: str, together: int = 1) -> None:
    """Raises ParameterError if ``batch`` is not divisible among the processes in whole groups of ``together`` rows.

    ``knob``: the name of the parameter, for the text.
    """
    if batch % (count_processes() * together):
        groups = f", in groups of {together}" if together > 1 else ""
        raise ParameterError(
            f"{knob} is {batch}, which {count_processes()} processes cannot share equally{groups}. Make it a "
            f"multiple of {count_processes() * together}, or set `tasks` lower (params.yaml, compute)."
        )


@torch.no_grad()
def average_gradients(tensors: Iterable[Tensor | None]) -> None:
    """Replace each gradient by its mean over the processes, before an update. A tensor that is None is left out.

    One message carries all of them, and every process gets identical numbers. Raises ProcessLost.
    """
    if count_processes() == 1:
        return
    present = [tensor for tensor in tensors if tensor is not None]
    parts = _sum(torch.cat([tensor.reshape(-1) for tensor in present])).div_(count_processes())
    for tensor, part in zip(present, parts.split([tensor.numel() for tensor in present]), strict=True):
        tensor.copy_(part.view_as(tensor))


def average_losses(losses: Mapping[str, float]) -> dict[str, float]:
    """The mean of each loss over the processes, the same in all of them. Raises ProcessLost."""
    if count_processes() == 1:
        return dict(losses)
    sums = _sum(torch.tensor([*losses.values()], dtype=torch.float64, device=_device())).tolist()
    return {name: value / count_processes() for name, value in zip(losses, sums, strict=True)}


def any_process(flag: bool) -> bool:
    """Whether ``flag`` is true in any process. Waits for all of them. Raises ProcessLost."""
    if count_processes() == 1:
        return flag
    return _sum(torch.tensor(float(flag), device=_device())).item() > 0


@torch.no_grad()
def start_together(modules: Iterable[nn.Module], step: int, state: Path) -> None:
    """Copy the weights and buffers of the first process to all others.

    ``step``: the step from which this process resumes, as read from ``state``. Raises MasqueradeError if the steps of
    the processes differ.
    """
    if count_processes() == 1:
        return
    steps = _sum(nn.functional.one_hot(torch.tensor(dist.get_rank()), count_processes()).to(_device()) * step).tolist()
    if len(set(steps)) > 1:
        raise MasqueradeError(
            f"the processes of this training read different steps ({steps}) from {state}: all nodes must see the same "
            "file. Put the repository on a shared file system, or delete the state."
        )
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            values = tensor.detach().contiguous()
            with _name_lost():
                dist.broadcast(values, 0)
            tensor.copy_(values)


def all_continue(hand_on: Callable[[], bool]) -> bool:
    """Call ``hand_on`` in every process when the state is saved; returns whether it is true in all of them.

    ``hand_on`` hands a request to stop to the handler of its signal. If a process ends in it, as the first does when
    submitit requeues the job, the others end too: raises SystemExit.
    """
    any_process(False)  # a barrier: a process that ends before the first has saved could end the first one too
    continues = hand_on()
    try:
        return not any_process(not continues)
    except ProcessLost:
        raise SystemExit(1) from None


def _sum(tensor: Tensor) -> Tensor:
    with _name_lost():
        dist.all_reduce(tensor)
    return tensor


@contextmanager
def _name_lost() -> Iterator[None]:
    """Raises the errors of gloo and NCCL in the block as ProcessLost."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost(
            f"{process.LOST}, or did not answer for {PATIENCE} ({error}). The cause is in its log, beside the log of "
            "this process. Run the same command again: the training resumes from the last state."
        ) from error


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
