"""One training in several processes: each takes its rows of every batch, and all of them take the same step.

A task draws the whole batch of a step in every process (it depends on the seed and the number of the step alone) and
keeps `rows`; `average` makes one gradient of the processes' own before each update. So what is trained is what one
process would have trained with the same batch, but for the order in which floats are added. With one process every
function here does nothing: a task says it once. Which trainings may run so, and what is exact: docs/cluster.md.
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

from masquerade import place
from masquerade.errors import MasqueradeError, ParameterError

PATIENCE = timedelta(minutes=30)  # for the slowest process: pictures are decoded, and samples drawn, in one alone

Batch = TypeVar("Batch", Tensor, np.ndarray)


class ProcessLost(MasqueradeError):
    """Another process of the same training has ended or does not answer."""


@contextmanager
def processes() -> Iterator[bool]:
    """Join the other processes of this training for the block, by NCCL on GPUs and gloo elsewhere.

    Yields whether this process is the first: what comes after the training is for that one to do. All leave the block
    together, when the first has written the checkpoint. Each takes the GPU of its place on the node. Raises
    ProcessLost where the others do not come.
    """
    here = place.here()
    if here.count == 1:
        yield True
        return
    gpus = torch.cuda.device_count()
    if gpus:
        torch.cuda.set_device(here.local % gpus)  # one, where SLURM shows each task its own
    with _others():
        dist.init_process_group(
            "nccl" if gpus else "gloo", init_method=f"tcp://{here.address}:{here.port}", timeout=PATIENCE,
            rank=here.rank, world_size=here.count,
        )  # fmt: skip
    yield here.rank == 0
    anywhere(False)  # not after an error: a process that lost another would wait here for it
    dist.destroy_process_group()


def count() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def first() -> bool:
    """Whether this process is the one that logs, draws samples and writes files."""
    return not dist.is_initialized() or dist.get_rank() == 0


def rows(whole: Batch) -> Batch:
    """This process's rows of a whole batch: from its rank on, every `count`-th.

    Rows that lie a multiple of `count` apart stay together, and so do the first half of a batch and the groups of the
    minibatch standard deviation, which no contiguous share would keep.
    """
    return whole[dist.get_rank() :: count()] if dist.is_initialized() else whole


def normal(number: int, *shape: int, like: Tensor) -> Tensor:
    """Standard normal (number, *shape): this process's `rows` of what one process would have drawn for all."""
    return rows(torch.randn(number * count(), *shape, device=like.device, dtype=like.dtype))


def check_batch(batch: int, knob: str, together: int = 1) -> None:
    """Raises ParameterError where ``batch`` cannot be shared out in whole groups of ``together`` rows."""
    if batch % (count() * together):
        groups = f", in groups of {together}" if together > 1 else ""
        raise ParameterError(
            f"{knob} is {batch}, which {count()} processes cannot share equally{groups}: make it a multiple of "
            f"{count() * together}, or set `tasks` lower (params.yaml, compute)."
        )


@torch.no_grad()
def average(tensors: Iterable[Tensor | None]) -> None:
    """Replace each tensor by its mean over the processes: gradients, before an update. None is left out.

    All in one message; every process ends with the very same numbers. Raises ProcessLost.
    """
    if count() == 1:
        return
    present = [tensor for tensor in tensors if tensor is not None]
    parts = _summed(torch.cat([tensor.reshape(-1) for tensor in present])).div_(count())
    for tensor, part in zip(present, parts.split([tensor.numel() for tensor in present]), strict=True):
        tensor.copy_(part.view_as(tensor))


def mean(losses: Mapping[str, float]) -> dict[str, float]:
    """The mean of each loss over the processes, the same in all of them. Raises ProcessLost."""
    if count() == 1:
        return dict(losses)
    sums = _summed(torch.tensor([*losses.values()], dtype=torch.float64, device=_device())).tolist()
    return {name: value / count() for name, value in zip(losses, sums, strict=True)}


def anywhere(flag: bool) -> bool:
    """Whether it is so in any process; waits for all of them. Raises ProcessLost."""
    if count() == 1:
        return flag
    return _summed(torch.tensor(float(flag), device=_device())).item() > 0


@torch.no_grad()
def start_together(modules: Iterable[nn.Module], step: int, state: Path) -> None:
    """Give every process the first one's weights and buffers.

    Raises MasqueradeError where the processes found different states, and would go on from different steps.
    """
    if count() == 1:
        return
    steps = _summed(nn.functional.one_hot(torch.tensor(dist.get_rank()), count()).to(_device()) * step).tolist()
    if len(set(steps)) > 1:
        raise MasqueradeError(
            f"the processes of this training found states of the steps {steps} in {state}: the file must lie where "
            "all nodes see the same one. Put the repository on a shared file system, or delete the state."
        )
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            sent = tensor.detach().contiguous()
            with _others():
                dist.broadcast(sent, 0)
            tensor.copy_(sent)


def go_on(handed_on: Callable[[], bool]) -> bool:
    """Hand each process's requests to stop to who handles them, when all is saved; whether every process goes on.

    Where one does not return from it, as the first does not when submitit requeues the job, the others end as well:
    SystemExit.
    """
    anywhere(False)  # nobody ends before the first has saved: it might take the first along
    goes = handed_on()
    try:
        return not anywhere(not goes)
    except ProcessLost:
        raise SystemExit(1) from None


def _summed(tensor: Tensor) -> Tensor:
    with _others():
        dist.all_reduce(tensor)
    return tensor


@contextmanager
def _others() -> Iterator[None]:
    """What gloo and NCCL raise in the block, each its own kind, as ProcessLost."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost(
            f"{place.LOST}, or did not answer for {PATIENCE} ({error}). Its log, beside "
            "that of this process, says why; the same command goes on from the last state."
        ) from error


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
