"""Jobs of one method with equal resources share a submission to SLURM, and run one after the other in it.

Each job keeps its own waiting process, log, run and status, as if it were alone. The first one that finds itself in no
submission makes one for all that wait. In the submission the jobs share one import of the libraries, and on a GPU one
process (`masquerade.pipeline.fork_server`). If a submission dies, its first job fails. The others are submitted again:
they may have suffered from what they shared, its time limit and its memory.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from masquerade.core import files
from masquerade.lineage.tracking import BUILD, LOG, RUN
from masquerade.pipeline import fork_server, forked_job, launch

if TYPE_CHECKING:
    from masquerade.pipeline.submitit_internals import Job

GATHERING_SECONDS = 5.0
"""A job waits for others, which Snakemake starts at the same time, until none has come for so long."""
_IGNORING_WARNINGS = ("sh", "-c", 'trap "" TERM USR2; exec "$@"', "sh")
"""SLURM warns all processes of a submission. Only submitit answers, and requeues the submission."""


@dataclass(frozen=True)
class Programs:
    """The programs of a submission. submitit calls them in another process, and again if SLURM requeues them.

    ``logs``: the folder in which each program has a log, and after its end a file with its exit status.
    """

    programs: tuple[launch.Program, ...]
    logs: Path

    def __call__(self) -> None:
        server = fork_server.ForkServer(logging.getLogger(__name__).warning)
        due = [program for program in self.programs if not _status(self.logs, program.run).is_file()]
        if len(due) > 1:
            server.start(fork_server.WORTHWHILE)  # on a GPU two pay already
        try:
            for program in due:
                self._run(program)
        finally:
            server.stop()

    def _run(self, program: launch.Program) -> None:
        log = _log(self.logs, program.run)
        command = [*_IGNORING_WARNINGS, sys.executable, program.script, *program.arguments]
        own = {RUN: program.run, LOG: str(log)}
        with log.open("ab") as stream:
            ended = subprocess.run(command, env=os.environ | own, stdout=stream, stderr=stream, check=False)
        files.write_text(_status(self.logs, program.run), str(ended.returncode))


def run(submission: Mapping[str, Any], script: str, arguments: Sequence[str]) -> None:
    """Run a program to its end on SLURM, in a submission with others. Arguments and errors as in `launch.run`."""
    os.environ.pop(forked_job.ADDRESS, None)  # the job runs on another machine
    program = launch.Program(script, tuple(arguments), uuid.uuid4().hex)
    with launch.signals_to_stop() as stopped:
        while not _ran(program, submission, stopped):
            sys.stderr.write(f"{submission['name']} is submitted again: what it shared a submission with ended it.\n")


def _ran(program: launch.Program, submission: Mapping[str, Any], stopped: threading.Event) -> bool:
    """Wait for a submission with this program, and for the program. False if the program must be submitted again.

    Raises LaunchError if the program failed.
    """
    from masquerade.pipeline import submitit_internals

    name, logs = submission["name"], Path(submission["logs"])
    job, runs = _submission_of(program, submission, stopped)
    log, status = _log(logs, program.run), _status(logs, program.run)
    sys.stderr.write(f"{name} is one of {len(runs)} programs of slurm job {job.job_id}; its log: {log}\n")
    launch.follow(job, log, stopped, status.is_file)
    if status.is_file():
        if (code := int(status.read_text(encoding="utf-8"))) == 0:
            return True
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reason = f"signal {-code} ended it" if code < 0 or not said else said[-1].rstrip(".")
        raise launch.LaunchError(f"{name} failed as job {job.job_id}: {reason}. Its log is {log}.")
    unfinished = [run for run in runs if not _status(logs, run).is_file()]
    alone = unfinished[0] == runs[0] == program.run
    if alone or submitit_internals.read_state(job) == "CANCELLED":
        launch.conclude(job, name)
        raise launch.LaunchError(f"{name} ended as job {job.job_id} without its status. Its log is {log}.")
    return False


def _submission_of(
    program: launch.Program, submission: Mapping[str, Any], stopped: threading.Event
) -> tuple["Job", list[str]]:
    """The submission with this program, and the runs of all its programs in their order."""
    from masquerade.pipeline import submitit_internals

    same = json.dumps([os.environ.get(BUILD), submission], sort_keys=True)
    place = Path(submission["logs"]) / "waiting" / sha256(same.encode()).hexdigest()[:16]
    waiting, answer = (place / f"{program.run}.{end}" for end in ("waiting", "answer"))
    answer.unlink(missing_ok=True)  # of a submission that died
    files.write_text(waiting, json.dumps([program.script, program.arguments]))
    before = 0
    while (count := len(list(place.glob("*.waiting")))) > before and not stopped.wait(GATHERING_SECONDS):
        before = count
    try:
        while not answer.is_file():
            with suppress(Timeout), FileLock(place / "lock", blocking=False):
                if waiting.is_file():
                    _submit_waiting(waiting, submission, stopped)
            if stopped.wait(0 if answer.is_file() else 1.0) and not answer.is_file():
                raise launch.LaunchError(f"stopped while {submission['name']} is not submitted yet.")
    finally:
        waiting.unlink(missing_ok=True)
    number, runs = json.loads(answer.read_text(encoding="utf-8"))
    return submitit_internals.find_slurm_job(submission["logs"], number), runs


def _submit_waiting(first: Path, submission: Mapping[str, Any], stopped: threading.Event) -> None:
    """Submit the program of the file ``first``, and others that wait beside it, at most `together` in all."""
    others = sorted(path for path in first.parent.glob("*.waiting") if path != first)
    taken: dict[Path, launch.Program] = {}
    for path in [first, *others]:
        with suppress(FileNotFoundError):  # a job that is stopped removes its file
            if len(taken) < submission["together"]:
                taken[path] = launch.Program(*_program(path), run=path.stem)
    job = launch.submit(Programs(tuple(taken.values()), Path(submission["logs"])), "slurm", submission, stopped)
    for path in taken:
        files.write_text(path.with_suffix(".answer"), json.dumps([job.job_id, [path.stem for path in taken]]))
        path.unlink(missing_ok=True)  # a job that has its answer removes its file, too


def _program(waiting: Path) -> tuple[str, tuple[str, ...]]:
    script, arguments = json.loads(waiting.read_text(encoding="utf-8"))
    return script, tuple(arguments)


def _log(logs: Path, run: str) -> Path:
    return logs / f"{run}_log.err"


def _status(logs: Path, run: str) -> Path:
    return logs / f"{run}.status"
