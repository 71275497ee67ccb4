"""The fork server of a build: a process that has imported the large libraries, and forks itself for each job.

Importing PyTorch and torchvision takes a job 1 to 3 seconds. The process of the build starts the server.
Programs reach it through `masquerade.pipeline.forked_job`. The server imports libraries only: each job imports the code
of Masquerade from the disk. Jobs share nothing with each other. The server and its jobs end when the process of the
build ends, in whatever way.
"""

import atexit
import gc
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection as connections
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from masquerade.core import files, memory, threads
from masquerade.pipeline import forked_job

SOCKET = "jobs"
"""The name of the server's socket in its folder."""
WORTHWHILE = 4
"""The fewest jobs for which the 3 seconds of importing pay."""
ENDED = (
    "The process that starts the jobs ended{}. From now on each job starts by itself, which takes 1 to 3 seconds more. "
    "Nothing is lost."
)


class ForkServer:
    """The server of this process's build.

    ``announce`` gets one sentence if the server ends before `stop`.
    """

    def __init__(self, announce: Callable[[str], None]):
        self._announce = announce
        self._lifeline: int | None = None
        self._process: subprocess.Popen | None = None

    def start(self, jobs: int) -> None:
        """Start the server if it pays for this number of jobs, and let the programs of this build find it.

        A server that the environment names already serves this build, too.
        """
        if jobs < WORTHWHILE or forked_job.ADDRESS in os.environ:
            return
        folder = Path(tempfile.mkdtemp(prefix="masquerade-"))  # only this user may enter it
        lifeline, self._lifeline = os.pipe()
        self._process = launch(folder / SOCKET, lifeline)
        os.close(lifeline)
        os.environ[forked_job.ADDRESS] = str(folder / SOCKET)
        threading.Thread(target=self._watch, args=[self._process, folder], daemon=True).start()

    def _watch(self, process: subprocess.Popen, folder: Path) -> None:
        status = process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        if self._lifeline is not None:
            self._announce(ENDED.format(f" (status {status})"))

    def stop(self) -> None:
        """End the server that this build started, and every job that still runs."""
        if self._process is None or self._lifeline is None:
            return
        os.environ.pop(forked_job.ADDRESS, None)
        lifeline, self._lifeline = self._lifeline, None
        os.close(lifeline)
        self._process.wait()


def launch(address: Path, lifeline: int) -> subprocess.Popen:
    """Start a server that listens at ``address``, in a folder of its own that it removes when it ends.

    It lives until the file descriptor ``lifeline`` can be read.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        with forked_job.short(address) as name:
            listener.bind(name)
        listener.listen(1024)
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno()), str(lifeline), str(address.parent)],
            pass_fds=(listener.fileno(), lifeline),
            # A process with threads must not fork.
            env=os.environ | dict.fromkeys(threads.VARIABLES, "1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl-C reaches jobs through their programs
        )


class _Server:
    """The server in its own process.

    ``lifeline``: a file that can be read when the process of the build has ended. ``folder``: of the socket.
    """

    def __init__(self, listener: socket.socket, lifeline: int, folder: Path):
        self._listener, self._lifeline, self._folder = listener, lifeline, folder
        self._jobs: dict[socket.socket, BaseProcess] = {}
        """The connection of each running job to its program."""

    def run(self) -> None:
        """Serve until the process of the build ends."""
        while True:
            sentinels = [job.sentinel for job in self._jobs.values()]
            ready = connections.wait([self._listener, self._lifeline, *self._jobs, *sentinels])
            if self._lifeline in ready:
                return self._stop()
            for program, job in list(self._jobs.items()):
                if job.sentinel in ready:
                    self._report(program, job)
                elif program in ready:  # the program was killed
                    forked_job.send_signal(job.pid or 0, signal.SIGKILL)
            if self._listener in ready:
                self._accept(self._listener.accept()[0])

    def _accept(self, program: socket.socket) -> None:
        try:
            streams = socket.recv_fds(program, 1, 3)[1]
            request = json.loads(forked_job.receive(program, forked_job.receive_number(program)))
        except OSError:  # the program was killed
            program.close()
            return
        if request["python"] == forked_job.python():
            inherited = [self._listener, program, *self._jobs]
            job = multiprocessing.get_context("fork").Process(target=_run, args=(request, streams, inherited))
            job.start()
            with suppress(ProcessLookupError, PermissionError):  # the job does the same; the first one counts
                os.setpgid(job.pid or 0, job.pid or 0)
            self._jobs[program] = job
            with suppress(OSError):
                program.sendall(forked_job.NUMBER.pack(job.pid))
        else:
            program.close()
        for stream in streams:
            os.close(stream)

    def _report(self, program: socket.socket, job: BaseProcess) -> None:
        job.join()
        forked_job.send_signal(job.pid or 0, signal.SIGKILL)  # what it started and left behind
        with suppress(OSError):
            program.sendall(forked_job.NUMBER.pack(job.exitcode))
        program.close()
        del self._jobs[program]

    def _stop(self) -> None:
        for program, job in list(self._jobs.items()):
            forked_job.send_signal(job.pid or 0, signal.SIGKILL)
            self._report(program, job)
        shutil.rmtree(self._folder, ignore_errors=True)


def _run(request: dict[str, Any], streams: list[int], inherited: list[socket.socket]) -> None:
    """Turn this fork into the process that the request describes, and run its program."""
    for other in inherited:
        other.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - stays open as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.setpgid(0, 0)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv, sys.path[:] = request["argv"], request["path"]
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
        _write_usage(Path(request["usage"]))


def _write_usage(file: Path) -> None:
    """Write the processor time in seconds, and the memory, input and output in MiB, of this job and what it started."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    usage = {
        "cpu_time": sum(part.ru_utime + part.ru_stime for part in parts),
        "max_rss": max(part.ru_maxrss for part in parts) / 1024,
        "io_in": sum(part.ru_inblock for part in parts) / 2048,
        "io_out": sum(part.ru_oublock for part in parts) / 2048,
    }
    with suppress(OSError):  # the build has ended, and its folder with it
        files.write_text(file, json.dumps(usage))


def usage(shell: int) -> dict[str, float]:
    """What the job used whose program ran in the process ``shell`` or below it, as `_write_usage` wrote it, once.

    Empty if it ran in no fork server, or if it was killed.
    """
    folder = Path(os.environ.get(forked_job.ADDRESS, "")).parent
    for file in (*folder.glob(f"{shell}.*"), *folder.glob(f"*.{shell}")) if forked_job.ADDRESS in os.environ else ():
        used = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        return used
    return {}


def _show(error: BaseException) -> None:
    """Print the traceback as Python does, from the program on."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def main() -> None:
    """The server: LISTENER LIFELINE FOLDER, two open files and the folder of the socket."""
    from masquerade.pipeline import libraries

    listener, lifeline = map(int, sys.argv[1:3])
    memory.keep_freed()
    gc.disable()  # searching the objects of the libraries for garbage while they are imported takes a second
    libraries.load()
    gc.collect()
    gc.freeze()  # objects that are never searched stay shared between the jobs
    gc.enable()
    _Server(socket.socket(fileno=listener), lifeline, Path(sys.argv[3])).run()


if __name__ == "__main__":
    main()
