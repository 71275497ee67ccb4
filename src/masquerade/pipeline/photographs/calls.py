"""The calls of a program: one after another, in a process that can compute, and with errors that a person can mend."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from masquerade.core import seeding
from masquerade.core.errors import MasqueradeError, explain_missing_packages

_TURN = threading.RLock()


@cache
def _first_process() -> int:
    """The process that was the first to load networks: this one, or the one of which it is a fork."""
    return os.getpid()


@contextmanager
def call() -> Iterator[None]:
    """A call of a program. Threads take turns, because the detectors and the networks are shared and hold state.

    Raises errors of libraries that a person can mend as MasqueradeError, as the command line does, and MasqueradeError
    in a fork of a process that loaded networks: the threads of PyTorch and OpenCV are missing there, and it would wait
    for them forever.
    """
    if _first_process() != os.getpid():
        raise MasqueradeError(
            f"This process is a fork of process {_first_process()}, which had called masquerade.load. A fork lacks the "
            "threads that compute. Call masquerade.load in each worker, and in no process before the fork: gunicorn "
            'without --preload, multiprocessing with get_context("spawn").'
        )
    with _TURN, explain_missing_packages(), seeding.explain_nondeterminism():
        yield
