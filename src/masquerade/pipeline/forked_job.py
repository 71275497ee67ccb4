"""Hands a program of workflow/scripts/ to the fork server of its build, which has imported the libraries already.

The command line is the same with and without the server. Without one (SLURM, by hand) the program runs in its own
process. `masquerade.pipeline.fork_server` is the other side. This module imports only what costs no time.
"""

import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

ADDRESS = "MASQUERADE_FORK_SERVER"
"""The environment variable with the path of the server's socket."""
NUMBER = struct.Struct("!q")
"""What the two sides send beside the request: its length, the process id of the job, and its exit status."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_ENDED = ConnectionError("the fork server has ended")


def delegate() -> None:
    """Run this program in a fork of the server, and end this process with the status of that job.

    Returns if this process is to run the program itself: no server, a server of another Python, or one that has died.
    If the server dies while the job runs, the job is killed first. The job gets this process's arguments, environment,
    working directory, standard streams and signals. Its end is this process's end, by the same status or signal.
    """
    address = os.environ.pop(ADDRESS, None)
    if address is None:
        return
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with shorten_address(address) as name:
                connection.connect(name)
            socket.send_fds(connection, [b"\0"], [0, 1, 2])
            request = json.dumps(_request(Path(address).parent)).encode()
            connection.sendall(NUMBER.pack(len(request)) + request)
            job = receive_number(connection)
        except OSError:
            return
        status = _wait(connection, job)
    if status is not None:
        _end(status)


@contextmanager
def shorten_address(address: str | Path) -> Iterator[str]:
    """Another path of the same socket, for a folder with a long name: the kernel takes at most 107 bytes."""
    folder = os.open(Path(address).parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{Path(address).name}"
    finally:
        os.close(folder)


def _request(folder: Path) -> dict[str, Any]:
    return {
        "usage": str(folder / f"{os.getppid()}.{os.getpid()}"),
        "python": identify_python(),
        "argv": sys.argv,
        "path": sys.path,
        "directory": str(Path.cwd()),
        "environment": dict(os.environ),
        "ignored": [number for number in _FORWARDED if signal.getsignal(number) is signal.SIG_IGN],
    }


def identify_python() -> list[Any]:
    """What must be equal in both processes: the interpreter and its flags."""
    return [sys.executable, *sys.flags]


def reset_signals(ignored: list[int]) -> None:
    """Give the signals the handlers of a new Python process in which these numbers are ignored."""
    for number in _FORWARDED:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in ignored else default)


def receive_number(connection: socket.socket) -> int:
    """The next number of the other side. Raises ConnectionError if it has closed the connection."""
    return NUMBER.unpack(receive(connection, NUMBER.size))[0]


def receive(connection: socket.socket, size: int) -> bytes:
    """The next ``size`` bytes of the other side. Raises ConnectionError if it has closed the connection."""
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise _ENDED
        received += part
    return received


def _wait(connection: socket.socket, job: int) -> int | None:
    """The exit status of the job, a negative signal number if one ended it; None after the death of the server.

    Meanwhile signals to this process go to the job.
    """
    handlers = {
        number: signal.signal(number, lambda number, _: send_signal(job, number))
        for number in _FORWARDED
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        return receive_number(connection)
    except OSError:
        while send_signal(job, signal.SIGKILL):
            time.sleep(0.01)
        return None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def send_signal(job: int, number: int) -> bool:
    """Send a signal to every process of a job. Returns False if there is none any more."""
    with suppress(ProcessLookupError):
        os.killpg(job, number)
        return True
    return False


def _end(status: int) -> NoReturn:
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
