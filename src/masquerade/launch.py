"""Where a step runs: in this process, in one of its own on this machine, or on SLURM through submitit.

What travels to the cluster is small: the command line of one of the programs of workflow/scripts/. A step that ran
into its time limit or was pre-empted is requeued and is the same command once more; what must survive lies in the
files that it names. Whoever waits here shows the job's log as it grows, and cancels the job when told to stop.
"""

import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade import place
from masquerade.errors import MasqueradeError
from masquerade.tracking import LOG, RUN

if TYPE_CHECKING:
    from submitit import Job
    from submitit.helpers import DelayedSubmission

_STATE_SECONDS = 30  # how long a job that ended without a word may go unnoticed; each look is a query of the cluster's
_LOST_LOOKS = 20  # a second each: how long a job may be that of a failed node before it counts as lost
_HINTS = {
    "CANCELLED": "Somebody cancelled it; run the same command again to go on.",
    "TIMEOUT": "It ran into its time limit: raise `minutes` in params.yaml, compute.",
    "OUT_OF_MEMORY": "It needs more memory: raise `memory_gb` in params.yaml, compute.",
    "NODE_FAIL": "Its node failed; run the same command again to go on.",
}


class LaunchError(MasqueradeError):
    """A job could not be submitted, or ended without its outputs."""


@dataclass(frozen=True)
class Program:
    """A program of workflow/scripts/ with its arguments, as submitit takes it to another process."""

    script: str
    arguments: tuple[str, ...]
    run: str
    """The identifier of its tracked run, the same when it is requeued."""

    def __call__(self) -> None:
        import submitit

        paths = submitit.JobEnvironment().paths
        if paths.result_pickle.is_file():  # SLURM requeues a job that it pre-empts even where it ended in its grace
            return
        os.environ |= {RUN: self.run, LOG: str(paths.stderr)}
        sys.argv = [self.script, *self.arguments]
        try:
            runpy.run_path(self.script, run_name="__main__")
        except SystemExit as end:  # a program's last words; a number is submitit's, that has requeued the job
            if isinstance(end.code, str):
                raise LaunchError(end.code) from None
            raise


class Resumable(Program):
    """A program that saves its state: worth another go after its time limit."""

    def checkpoint(self) -> "DelayedSubmission":
        """submitit calls this when the job is pre-empted or runs out of time."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run(launcher: str, submission: Mapping[str, Any], script: str, arguments: Sequence[str]) -> None:
    """Run a program to its end with ``launcher`` (``in_process``, ``local`` or ``slurm``).

    ``submission`` is what is asked of the cluster (params.yaml, compute), with ``name``, ``cpus``, ``resumable``, and
    the folder ``logs``.
    Raises LaunchError, in one paragraph with the path of the log, where the job cannot be submitted, fails or is
    cancelled.
    """
    if launcher == "in_process":
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
        return
    kind = Resumable if submission["resumable"] else Program
    program = kind(script, tuple(arguments), uuid.uuid4().hex)
    with _stops() as stopped:
        job = _submit(program, launcher, submission)
        _follow(job, stopped)
    _conclude(job, submission["name"])


def check_partitions(asked: Mapping[str, str]) -> None:
    """Compare partitions, by the knobs that name them, with those of this cluster; '' is its default.

    Raises LaunchError naming the first that it has not, or where SLURM is not to be found.
    """
    try:
        listed = subprocess.run(["sinfo", "-h", "-o", "%R"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise LaunchError(
            f"SLURM does not answer ({reason}). Run this on a login node of the cluster, or without `--profile slurm` "
            "on this machine alone."
        ) from error
    known = sorted(set(listed.split()))
    for knob, name in asked.items():
        if name and name not in known:
            raise LaunchError(f"params.yaml: {knob} is '{name}'. This cluster has: {', '.join(known)}.")


def _submit(program: Program, launcher: str, submission: Mapping[str, Any]) -> "Job":
    import submitit
    from submitit.core.utils import FailedJobError

    logs = Path(submission["logs"])
    logs.mkdir(parents=True, exist_ok=True)
    wanted = {
        "name": f"masquerade {submission['name']}",
        "timeout_min": submission["minutes"],
        "cpus_per_task": submission["cpus"],
        "tasks_per_node": submission["tasks"],
        "mem_gb": submission["memory_gb"],
    }
    if submission["gpus"]:
        wanted["gpus_per_node"] = submission["gpus"]
    options = {}
    if launcher == "slurm":
        options = {"slurm_python": sys.executable, "slurm_max_num_timeout": submission["requeues"]}
        asked = {f"slurm_{key}": submission[key] for key in ("partition", "account", "constraint", "setup")}
        wanted |= {key: value for key, value in asked.items() if value}
        wanted["slurm_signal_delay_s"] = submission["grace_seconds"]
        wanted["slurm_additional_parameters"] = {"requeue": True}
    executor = submitit.AutoExecutor(folder=str(logs), cluster=launcher, **options)
    executor.update_parameters(**wanted)
    try:
        job = executor.submit(program)
    except (FailedJobError, OSError) as error:
        reason = re.findall(r"error: (.+)", str(error)) or [str(error)]
        asked = ", ".join(f"{key} '{submission[key]}'" for key in ("partition", "account", "constraint"))
        raise LaunchError(
            f"SLURM refused {submission['name']}: {'; '.join(reason)}. It was asked for {asked} "
            "(params.yaml, compute); `sinfo` and `sacctmgr show associations user=$USER` list what there is."
        ) from error
    sys.stderr.write(f"{submission['name']} is {launcher} job {job.job_id}; its log: {_log(job)}\n")
    return job


def _follow(job: "Job", stopped: threading.Event) -> None:
    """Show the job's log as it grows, until it ends; cancel the job where this process is told to stop."""
    shown, looked, lost, done = 0, time.monotonic(), 0, False
    while not done:
        look = time.monotonic() - looked > _STATE_SECONDS
        looked = time.monotonic() if look else looked
        done = job.done(force_check=look)
        lost = lost + 1 if done and job.state == "NODE_FAIL" else 0
        if 0 < lost < _LOST_LOOKS:  # until SLURM has requeued it
            done = False
            job.watcher.clear()
        if stopped.wait(0.0 if done else 1.0):
            job.cancel(check=False)
            raise LaunchError(f"stopped; job {job.job_id} is cancelled. Its log is {_log(job)}.")
        shown += _show(_log(job), shown)


def _log(job: "Job") -> Path:
    """Of several processes, the log of the first."""
    return job.task(0).paths.stderr


def _show(log: Path, start: int) -> int:
    """Write what was added to a log since byte ``start`` to the standard error stream; how much it was."""
    if not log.is_file():
        return 0
    with log.open("rb") as file:
        file.seek(start)
        added = file.read()
    sys.stderr.buffer.write(added)
    sys.stderr.flush()
    return len(added)


def _conclude(job: "Job", name: str) -> None:
    """Raise LaunchError where a process of the job failed; of several, the cause, not who missed the lost one."""
    from submitit.core.utils import FailedJobError

    errors = [error for rank in range(job.num_tasks) if (error := job.task(rank).exception()) is not None]
    if not errors:
        return
    error = min(errors, key=lambda error: (place.LOST in str(error), not isinstance(error, FailedJobError)))
    if isinstance(error, FailedJobError):
        told = [line for line in str(error).split("-" * 22)[1].splitlines() if line.strip()]
        reason = told[-1].removeprefix(f"{__name__}.{LaunchError.__name__}: ").rstrip(".")
        raise LaunchError(f"{name} failed as job {job.job_id}: {reason}. Its log is {_log(job)}.")
    state = job.get_info(mode="force").get("State", "UNKNOWN").split()[0]
    hint = _HINTS.get(state, "Its log may say why.")
    raise LaunchError(f"{name} ended as job {job.job_id} without its outputs: {state}. {hint} Its log is {_log(job)}.")


@contextmanager
def _stops() -> Iterator[threading.Event]:
    """Inside the block, what asks this process to end (Ctrl-C, SIGTERM, a lost terminal) sets the event instead."""
    asked = threading.Event()
    kept = {
        number: signal.signal(number, lambda *_: asked.set())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield asked
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
