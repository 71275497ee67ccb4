"""What happens in a process that the fork server has forked: its job, and the further jobs of one that uses a GPU.

The first kernels of a process on a GPU take it seconds, and a fork cannot inherit them. Such a process therefore takes
another job after each one that succeeded. In between it forgets the code of Masquerade, random states, settings and
memory, so that every job gives the bytes of a process of its own. A job that fails ends its process.
"""

import atexit
import gc
import io
import json
import logging
import os
import random
import resource
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from masquerade.core import files, process
from masquerade.pipeline import forked_job, preload

_SEED_OF_GPU = 67280421310721
"""With which PyTorch begins on a GPU."""


def send_request(channel: socket.socket, request: dict[str, Any], streams: list[int]) -> None:
    """Hand a job to a process that waits for one: its description and its three standard streams."""
    socket.send_fds(channel, [b"\0"], streams)
    text = json.dumps(request).encode()
    channel.sendall(forked_job.NUMBER.pack(len(text)) + text)


def receive_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A job, from a program or from `send_request`. Raises ConnectionError if the other side has closed."""
    streams = socket.recv_fds(connection, 1, 3)[1]
    return json.loads(forked_job.receive(connection, forked_job.receive_number(connection))), streams


def run_jobs(
    request: dict[str, Any],
    streams: list[int],
    channel: socket.socket,
    inherited: list[socket.socket],
    imported: preload.PreloadedCode | None,
) -> None:
    """Turn this fork into the process that the request describes, and run its program.

    If the program used a GPU: write its name into the channel, and run the program of the next request from there,
    until the channel is closed. ``inherited``: sockets of the server, which are closed here. ``imported``: the code of
    Masquerade that the server has imported, None if it still imports libraries.
    """
    gc.freeze()  # objects that are never searched stay shared with the server
    gc.enable()
    for other in inherited:
        other.close()
    os.setpgid(0, 0)
    torch = sys.modules.get("torch")
    seed, before = torch.initial_seed() if torch else 0, dict.fromkeys(_usage(), 0.0)
    while True:
        _run(request, streams, before, imported)
        if torch is None or not torch.cuda.is_initialized():
            return
        _forget(torch, seed)
        before = _usage()
        name = request["argv"][0].encode()
        try:
            channel.sendall(forked_job.NUMBER.pack(len(name)) + name)
            request, streams = receive_request(channel)
        except OSError:  # the server has ended, or needs this process no more
            return


def _run(
    request: dict[str, Any], streams: list[int], before: dict[str, float], imported: preload.PreloadedCode | None
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - stays open as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv, sys.path[:] = request["argv"], request["path"]
    if imported is None or not imported.matches(sys.path):
        preload.forget_code()
    forked_job.reset_signals(request["ignored"])
    sys.modules["numpy"].random.seed()  # not the same for all jobs
    atexit._clear()
    script = Path(sys.argv[0]).resolve()
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = str(script)
    try:
        exec(compile(script.read_bytes(), script, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - as Python itself does
        _show(error)
        if isinstance(error, KeyboardInterrupt):  # Python ends by the signal itself
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.exit(1)
    finally:  # Python 3.11 omits both at the end of a fork
        for thread in threading.enumerate():
            if not thread.daemon and thread is not threading.main_thread():
                thread.join()
        atexit._run_exitfuncs()
        _write_usage(Path(request["usage"]), before)


def _forget(torch: ModuleType, seed: int) -> None:
    """Forget a job that succeeded: all but the libraries, and what the GPU has loaded for them."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forked_job.send_signal(os.getpid(), signal.SIGTERM)  # what it started and left behind
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    sys.modules["__main__"] = ModuleType("__main__")
    preload.forget_code()
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    random.seed()
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(_SEED_OF_GPU)
    torch.set_grad_enabled(True)
    torch.set_deterministic_debug_mode("default")
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    process.return_freed_memory()
    with suppress(OSError):  # the largest memory is that of the next job
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def _usage() -> dict[str, float]:
    """Processor time in seconds, and memory, input and output in MiB, of this process and what it started."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "cpu_time": sum(part.ru_utime + part.ru_stime for part in parts),
        "max_rss": max(part.ru_maxrss for part in parts) / 1024,
        "io_in": sum(part.ru_inblock for part in parts) / 2048,
        "io_out": sum(part.ru_oublock for part in parts) / 2048,
    }


def _write_usage(file: Path, before: dict[str, float]) -> None:
    """Write the `_usage` of a job, which was ``before`` at its start."""
    usage = {key: value - (before[key] if key != "max_rss" else 0.0) for key, value in _usage().items()}
    with suppress(OSError):  # the build has ended, and its folder with it
        files.write_text(file, json.dumps(usage))


def _show(error: BaseException) -> None:
    """Print the traceback as Python does, from the program on."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
