"""This process: its rank in a training, its threads, its freed memory, and the processes that work beside it.

Every program imports this module first, so it imports neither torch nor what starts processes.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from masquerade.core.errors import MasqueradeError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

    from threadpoolctl import ThreadpoolController


class Process(NamedTuple):
    """One of the ``count`` processes of a training. ``local_rank``: its rank among the processes of its node."""

    rank: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field hides the method of tuples
    local_rank: int
    address: str
    """Address of the process with rank 0, which the others connect to."""
    port: int


LOST = "another process of this training has ended"
"""The first words of an error that is only a consequence; the cause is in the log of the other process."""
ALONE = Process(0, 1, 0, "", 0)


def find_current() -> Process:
    """This process: by submitit's environment inside one of its jobs, else by torchrun's, else `ALONE`.

    SLURM's own variables are ignored, because an interactive session with several tasks sets them for a training of one
    process too. Raises MasqueradeError if torchrun's variables are incomplete.
    """
    if "SUBMITIT_EXECUTOR" in os.environ:
        from submitit.helpers import JobEnvironment, TorchDistributedEnvironment

        if JobEnvironment().num_tasks == 1:
            return ALONE
        environment = TorchDistributedEnvironment()
        one_node = environment.local_world_size == environment.world_size
        address = "127.0.0.1" if one_node else environment.master_addr  # a node may not resolve its own name
        return Process(
            environment.rank, environment.world_size, environment.local_rank, address, environment.master_port
        )
    if "WORLD_SIZE" in os.environ:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR")
        missing = [name for name in names if name not in os.environ]
        if missing:
            raise MasqueradeError(
                f"WORLD_SIZE is set, but {', '.join(missing)} not. Start this with torchrun, or unset WORLD_SIZE."
            )
        rank, total, local, port = (int(os.environ[name]) for name in names[:4])
        return Process(rank, total, local, os.environ["MASTER_ADDR"], port)
    return ALONE


REQUEUED = -1
"""The status with which submitit ends a process whose job SLURM has requeued."""


def find_requeue(error: BaseException | None) -> SystemExit | None:
    """What ends this process if ``error`` comes from submitit, which has requeued its job; otherwise None.

    submitit raises SystemExit in its handler of signals, so wherever the program is. SLURM ends a job as soon as it has
    accepted the request, sometimes before ``scontrol`` returns: then the handler's error is that of ``scontrol``.
    Compiled code that is being imported turns either into an ImportError, so the causes of ``error`` count too.
    """
    while error is not None:
        if isinstance(error, SystemExit) and not isinstance(error.code, str):
            return error
        if (
            isinstance(error, subprocess.CalledProcessError)
            and list(error.cmd[:2]) == ["scontrol", "requeue"]
            and error.returncode == -signal.SIGTERM
        ):
            return SystemExit(REQUEUED)
        error = error.__cause__ or error.__context__
    return None


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Libraries read these environment variables when they are loaded."""


_WITH_POOLS = ("numpy", "scipy", "torch", "sklearn", "cv2", "dlib")
"""Packages that load libraries with threads of their own."""


def limit_threads(number: int) -> None:
    """Let the libraries use ``number`` threads: those that are loaded later, and those that are loaded already."""
    os.environ |= dict.fromkeys(THREAD_VARIABLES, str(number))
    if "numpy" in sys.modules:
        _find_pools(tuple(name for name in _WITH_POOLS if name in sys.modules)).limit(limits=number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)


@cache
def _find_pools(_packages: tuple[str, ...]) -> "ThreadpoolController":
    """The libraries that are loaded together with these packages: finding them takes 20 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h."""
LARGE = 2**31 - 1


def keep_freed_memory() -> None:
    """Keep freed memory for the next tensors, in this process and its forks. Without glibc nothing happens.

    Otherwise glibc gives large tensors back to the kernel, which clears new pages for the next ones. That takes a fifth
    of the time of an optimization of one image.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(TRIM_THRESHOLD, LARGE)


def return_freed_memory() -> None:
    """Give the memory that `keep_freed_memory` kept back to the kernel. Without glibc nothing happens."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def open_pool(count: int) -> Iterator["ProcessPoolExecutor"]:
    """``count`` processes with one thread each, which end with the block; work that has not begun is dropped.

    They are spawned, because a fork would inherit the threads of this process. Raises MasqueradeError in place of
    BrokenProcessPool, when one of them was killed.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    processes = ProcessPoolExecutor(count, get_context("spawn"), _begin_worker)
    try:
        yield processes
    except BrokenProcessPool as error:
        raise MasqueradeError(
            f"One of {count} processes that work beside this one was killed. Is the memory full? Run it again."
        ) from error
    finally:
        processes.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    from multiprocessing import parent_process
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: this process ends with its parent
    limit_threads(1)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: "BaseProcess") -> None:
    parent.join()
    os._exit(1)
