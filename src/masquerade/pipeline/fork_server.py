"""The fork server of a build: a process that has imported the large libraries, and forks itself for each job.

Importing PyTorch and torchvision takes a job 1 to 3 seconds. The process of the build starts the server.
Programs reach it through `masquerade.pipeline.forked_job`. The server also imports the code of Masquerade. A job of
another working copy, or after a change of the code, imports it from its disk. Jobs share nothing with each other, with
one exception: a fork cannot inherit what a GPU needs before its first result. So the process of a job that used a GPU
and succeeded takes further jobs (`masquerade.pipeline.job_process`). The server and its jobs end when the process of
the build ends, in whatever way.
"""

import gc
import json
import multiprocessing
import os
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
from pathlib import Path
from typing import Any

from masquerade.core import process
from masquerade.pipeline import forked_job, job_process, preload

SOCKET = "jobs"
"""The name of the server's socket in its folder."""
WORTHWHILE = 4
"""The fewest jobs for which the 3 seconds of importing pay."""
IDLE_SECONDS = 60.0
"""So long nothing may happen until the processes end that wait for another job."""
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
        self._process = start_server(folder / SOCKET, lifeline)
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


def start_server(address: Path, lifeline: int) -> subprocess.Popen:
    """Start a server that listens at ``address``, in a folder of its own that it removes when it ends.

    It lives until the file descriptor ``lifeline`` can be read.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        with forked_job.shorten_address(address) as name:
            listener.bind(name)
        listener.listen(1024)
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno()), str(lifeline), str(address.parent)],
            pass_fds=(listener.fileno(), lifeline),
            # A process with threads must not fork.
            env=os.environ | dict.fromkeys(process.THREAD_VARIABLES, "1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl-C reaches jobs through their programs
        )


class _Fork:
    """A process that runs a job, and after it perhaps others: it writes into the channel when it takes another one."""

    def __init__(
        self,
        request: dict[str, Any],
        streams: list[int],
        inherited: list[socket.socket],
        imported: preload.PreloadedCode | None,
    ):
        self.channel, other = socket.socketpair()
        self.process = multiprocessing.get_context("fork").Process(
            target=job_process.run_jobs, args=(request, streams, other, [*inherited, self.channel], imported)
        )
        self.process.start()
        other.close()
        with suppress(ProcessLookupError, PermissionError):  # the process does the same; the first one counts
            os.setpgid(self.pid, self.pid)

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    def end(self) -> int:
        """End the process, and what it started and left behind; its exit status."""
        self.channel.close()
        forked_job.send_signal(self.pid, signal.SIGKILL)
        self.process.join()
        return self.process.exitcode or 0


class _Server:
    """The server in its own process.

    ``lifeline``: a file that can be read when the process of the build has ended. ``folder``: of the socket.
    """

    def __init__(self, listener: socket.socket, lifeline: int, folder: Path):
        self._listener, self._lifeline, self._folder = listener, lifeline, folder
        self._jobs: dict[socket.socket, _Fork] = {}
        """The process of each running job, by the connection to its program."""
        self._idle: list[_Fork] = []
        """Processes that have used a GPU, and wait for another job."""
        self._use_gpu: set[str] = set()
        """Programs of jobs that have used a GPU."""
        self._imported: preload.PreloadedCode | None = None

    def run(self) -> None:
        """Serve until the process of the build ends. A job that comes early imports for itself what is missing."""
        gc.disable()  # searching the objects of the libraries for garbage while they are imported takes a second
        for _ in preload.load_libraries():
            if not self._serve(0.0):
                return
        self._imported = preload.PreloadedCode(preload.load_code)
        gc.freeze()
        gc.enable()
        while self._serve(IDLE_SECONDS if self._idle else None):
            pass

    def _serve(self, seconds: float | None) -> bool:
        """Wait at most so long until something happens, and answer it. Returns False at the end of the build."""
        forks = [part for fork in self._jobs.values() for part in (fork.process.sentinel, fork.channel)]
        ready = connections.wait([self._listener, self._lifeline, *self._jobs, *forks], seconds)
        if self._lifeline in ready:
            self._stop()
            return False
        for program, fork in list(self._jobs.items()):
            if fork.process.sentinel in ready:
                fork.process.join()
                self._report(program, fork.end())
            elif fork.channel in ready:
                self._keep(program, fork)
            elif program in ready:  # the program was killed
                forked_job.send_signal(fork.pid, signal.SIGKILL)
        if self._listener in ready:
            self._accept(self._listener.accept()[0])
        if not ready:  # the memory of the GPU may be needed
            self._end_idle()
        return True

    def _accept(self, program: socket.socket) -> None:
        try:
            request, streams = job_process.receive_request(program)
        except OSError:  # the program was killed
            program.close()
            return
        if request["python"] == forked_job.identify_python():
            fork = self._handed(request, streams) or _Fork(request, streams, self._open(program), self._imported)
            self._jobs[program] = fork
            with suppress(OSError):
                program.sendall(forked_job.NUMBER.pack(fork.pid))
        else:
            program.close()
        for stream in streams:
            os.close(stream)

    def _open(self, program: socket.socket) -> list[socket.socket]:
        """The sockets that a new fork inherits and must close."""
        return [self._listener, program, *self._jobs, *(fork.channel for fork in (*self._jobs.values(), *self._idle))]

    def _handed(self, request: dict[str, Any], streams: list[int]) -> _Fork | None:
        """The waiting process that has got this request, if its program uses a GPU and a process waits."""
        while self._idle and request["argv"][0] in self._use_gpu:
            fork = self._idle.pop()
            try:
                job_process.send_request(fork.channel, request, streams)
            except OSError:  # it has crashed
                fork.end()
            else:
                return fork
        return None

    def _keep(self, program: socket.socket, fork: _Fork) -> None:
        """Report the success of a job whose process waits for another one."""
        try:
            self._use_gpu.add(forked_job.receive(fork.channel, forked_job.receive_number(fork.channel)).decode())
        except OSError:  # it ends: its sentinel is ready, or will be soon
            return
        self._idle.append(fork)
        self._report(program, 0)

    def _report(self, program: socket.socket, status: int) -> None:
        with suppress(OSError):
            program.sendall(forked_job.NUMBER.pack(status))
        program.close()
        del self._jobs[program]

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().end()

    def _stop(self) -> None:
        self._end_idle()
        for program, fork in list(self._jobs.items()):
            self._report(program, fork.end())
        shutil.rmtree(self._folder, ignore_errors=True)


def read_usage(shell: int) -> dict[str, float]:
    """What the job used whose program ran in the process ``shell`` or below it, as `job_process` wrote it, once.

    Empty if it ran in no fork server, or if it was killed.
    """
    folder = Path(os.environ.get(forked_job.ADDRESS, "")).parent
    for file in (*folder.glob(f"{shell}.*"), *folder.glob(f"*.{shell}")) if forked_job.ADDRESS in os.environ else ():
        usage = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        return usage
    return {}


def main() -> None:
    """The server: LISTENER LIFELINE FOLDER, two open files and the folder of the socket."""
    listener, lifeline = map(int, sys.argv[1:3])
    process.keep_freed_memory()
    _Server(socket.socket(fileno=listener), lifeline, Path(sys.argv[3])).run()


if __name__ == "__main__":
    main()
