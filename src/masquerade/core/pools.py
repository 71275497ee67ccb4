"""Processes that work beside this one, and end with it in whatever way it ends."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread

from masquerade.core import threads
from masquerade.core.errors import MasqueradeError


@contextmanager
def beside(count: int) -> Iterator[ProcessPoolExecutor]:
    """``count`` processes with one thread each, which end with the block; work that has not begun is dropped.

    They are spawned, because a fork would inherit the threads of this process. Raises MasqueradeError in place of
    BrokenProcessPool, when one of them was killed.
    """
    processes = ProcessPoolExecutor(count, get_context("spawn"), _begin)
    try:
        yield processes
    except BrokenProcessPool as error:
        raise MasqueradeError(
            f"One of {count} processes that work beside this one was killed. Is the memory full? Run it again."
        ) from error
    finally:
        processes.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: this process ends with its parent
    threads.limit(1)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
