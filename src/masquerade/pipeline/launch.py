"""Runs a step in this process, in a process of its own on this machine, or on SLURM through submitit.

A job is the command line of one of the programs of workflow/scripts/. A job that reaches its time limit or is
pre-empted is requeued: the same command runs again and continues from the files that it wrote. The process that waits
for a job shows the job's log as it grows, and cancels the job when the process gets a signal to stop.
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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from masquerade.core import process
from masquerade.core.errors import MasqueradeError
from masquerade.lineage.tracking import LOG, RUN
from masquerade.params.compute import TAKEN
from masquerade.pipeline import forked_job

if TYPE_CHECKING:
    from masquerade.pipeline.submitit_internals import DelayedSubmission, Job

_Result = TypeVar("_Result")
_STATE_SECONDS = 30
"""Between two queries of the cluster. They find a job that ended without writing its result."""
_REQUEUE_LOOKS = 20
"""Looks, one a second, in which SLURM may requeue the job of a failed node. After them the job counts as lost."""
_HINTS = {
    "CANCELLED": "Somebody cancelled it; run the same command again to continue.",
    "TIMEOUT": "It reached its time limit: raise `minutes` in params.yaml, compute.",
    "OUT_OF_MEMORY": "It needs more memory: raise `memory_gb` in params.yaml, compute.",
    "NODE_FAIL": "Its node failed; run the same command again to continue.",
}


MEMORY, GPUS = {"mem-per-cpu", "mem-per-gpu"}, {"gres", "gpus", "gpus-per-task", "gpus-per-socket"}
"""Options of sbatch that replace `memory_gb` and `gpus`."""
_OPEN = {"partition", "account", "constraint"}
"""Options that the parameters may leave to the cluster, and so to the variables of the site and the user."""
_VARIABLES = {"time": "TIMELIMIT", "mem": "MEM_PER_NODE", "array": "ARRAY_INX"}
"""Option of sbatch -> its variable without the prefix, where the variable has another name."""
_PASSING = re.compile(
    r"timed out|unable to contact|temporarily unavailable|zero bytes|standby mode|connection refused|MaxSubmitJob", re.I
)
"""What SLURM says when its controller is busy or restarted, and when the user has as many jobs as are allowed."""
_PAUSES = (5, 10, 20, 40, 80, 160, *[300] * 285)
"""Seconds between two requests to SLURM, a day in all: jobs of the user end, and room is made for others."""


class LaunchError(MasqueradeError):
    """A job could not be submitted, or ended without its outputs."""


@dataclass(frozen=True)
class Program:
    """A program of workflow/scripts/ with its arguments. submitit calls it in another process."""

    script: str
    arguments: tuple[str, ...]
    run: str
    """The identifier of its tracked run. It stays the same when the job is requeued."""

    def __call__(self) -> None:
        from masquerade.pipeline import submitit_internals

        if submitit_internals.has_result():  # SLURM requeues a pre-empted job even if it ended within its grace time
            return
        os.environ |= {RUN: self.run, LOG: str(submitit_internals.find_own_log())}
        sys.argv = [self.script, *self.arguments]
        try:
            runpy.run_path(self.script, run_name="__main__")
        except BaseException as error:
            if end := process.find_requeue(error):
                raise end from None
            if isinstance(error, SystemExit):  # with the text of the program's error
                raise LaunchError(error.code) from None
            raise


class Resumable(Program):
    """A program that saves its state, so that it can continue after its time limit."""

    def checkpoint(self) -> "DelayedSubmission":
        """The submission to requeue. submitit calls this when the job is pre-empted or reaches its time limit."""
        from masquerade.pipeline import submitit_internals

        return submitit_internals.DelayedSubmission(self)


def run(launcher: str, submission: Mapping[str, Any], script: str, arguments: Sequence[str]) -> None:
    """Run a program to its end with ``launcher`` (``in_process``, ``local`` or ``slurm``).

    ``submission``: the resources of the job (params.yaml, compute), its ``name``, ``cpus``, ``resumable``, and the
    folder ``logs``. Raises LaunchError, in one paragraph with the path of the log, when the job cannot be submitted,
    fails or is cancelled.
    """
    if launcher == "in_process":
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
        return
    from masquerade.pipeline import submitit_internals

    os.environ.pop(forked_job.ADDRESS, None)  # the job is a process of its own, perhaps on another machine
    kind = Resumable if submission["resumable"] else Program
    program = kind(script, tuple(arguments), uuid.uuid4().hex)
    with signals_to_stop() as stopped:
        job = submit(program, launcher, submission, stopped)
        follow(job, submitit_internals.find_log(job), stopped)
    conclude(job, submission["name"])


def check_partitions(partitions: Mapping[str, str]) -> None:
    """Check that this cluster has the partitions. ``partitions``: parameter -> name; '' is the cluster's default.

    Raises LaunchError naming the first partition that does not exist, or when SLURM cannot be found.
    """
    try:
        command = ["sinfo", "-h", "-o", "%R"]
        answer = _retry(
            lambda: subprocess.run(command, capture_output=True, text=True, check=True).stdout,
            "the partitions are not read yet", threading.Event(), most=4,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise LaunchError(
            f"SLURM does not answer ({reason}). Run this on a login node of the cluster, or omit `--profile slurm` to "
            "compute on this machine."
        ) from error
    partitions_here = sorted(set(answer.split()))
    for parameter, name in partitions.items():
        if name and name not in partitions_here:
            raise LaunchError(f"params.yaml: {parameter} is '{name}'. This cluster has: {', '.join(partitions_here)}.")


def submit(
    program: Callable[[], None], launcher: str, submission: Mapping[str, Any], stopped: threading.Event
) -> "Job":
    """Submit a job as `run` does, but do not wait for it. Raises LaunchError when it cannot be submitted."""
    import submitit

    from masquerade.pipeline import submitit_internals

    logs = Path(submission["logs"])
    logs.mkdir(parents=True, exist_ok=True)
    resources = {
        "name": f"masquerade {submission['name']}",
        "timeout_min": submission["minutes"],
        "cpus_per_task": submission["cpus"],
        "tasks_per_node": submission["tasks"],
    }
    given = {key: value for key, value in submission["options"].items() if value is not False}
    if not MEMORY & given.keys():
        resources["mem_gb"] = submission["memory_gb"]
    if submission["gpus"] and not GPUS & given.keys():
        resources["gpus_per_node"] = submission["gpus"]
    options = {}
    if launcher == "slurm":
        options = {"slurm_max_num_timeout": submission["requeues"]}
        optional = {key: submission[key] for key in ("partition", "account", "constraint", "setup") if submission[key]}
        resources |= {f"slurm_{key}": value for key, value in optional.items()}
        resources["slurm_signal_delay_s"] = submission["grace_seconds"]
        resources["slurm_additional_parameters"] = {"requeue": True, "export": "ALL", **given}
        # srun takes neither from the script by itself: it has variables of its own, and since 22.05 one processor
        resources["slurm_srun_args"] = ["--export=ALL", f"--cpus-per-task={submission['cpus']}"]
        forget_defaults({*optional, *submission["options"]})
    executor = submitit.AutoExecutor(folder=str(logs), cluster=launcher, **options)
    executor.update_parameters(**resources)
    try:
        job = _retry(lambda: executor.submit(program), f"{submission['name']} is not submitted yet", stopped)
    except (submitit_internals.FailedJobError, OSError) as error:
        reasons = "; ".join(submitit_internals.read_refusals(error))
        request = ", ".join(f"{key} '{submission[key]}'" for key in ("partition", "account", "constraint", "options"))
        raise LaunchError(
            f"SLURM refused {submission['name']}: {reasons}. The job requests {request} (params.yaml, compute); "
            "`sinfo` and `sacctmgr show associations user=$USER` list what is allowed."
        ) from error
    log = submitit_internals.find_log(job)
    sys.stderr.write(f"{submission['name']} is {launcher} job {job.job_id}; its log: {log}\n")
    return job


def forget_defaults(options: Collection[str] = ()) -> None:
    """Remove the variables of sbatch and srun for all that Masquerade decides, and for these further ``options``.

    A site or a user sets them, such as ``SBATCH_EXPORT=NONE``. To sbatch, a variable comes before an option in
    submitit's script. What the parameters leave open stays theirs.
    """
    decided = {*TAKEN, "export", *MEMORY, *GPUS} - _OPEN | {*options}
    names = {f"SBATCH_{_VARIABLES.get(option, option.upper().replace('-', '_'))}" for option in decided}
    for name in [name for name in os.environ if name in names or name.startswith("SRUN_")]:
        del os.environ[name]


def _retry(request: Callable[[], _Result], waiting: str, stopped: threading.Event, most: int | None = None) -> _Result:
    """The result of a request to SLURM, made again after growing pauses while it fails for what passes by itself.

    ``most``: the number of pauses; None: about a day. Raises the last error.
    """
    from masquerade.pipeline import submitit_internals

    for pause in _PAUSES[:most]:
        try:
            return request()
        except (submitit_internals.FailedJobError, subprocess.CalledProcessError) as error:
            said = f"{error} {getattr(error, 'stderr', '')}"
            if not _PASSING.search(said):
                raise
            reason = "; ".join(re.findall(r"error: (.+)", said)) or said
        sys.stderr.write(f"{waiting}: SLURM says '{reason.strip()}'. Next try in {pause} s.\n")
        if stopped.wait(pause):
            raise LaunchError(f"stopped while {waiting}.")
    return request()


def follow(job: "Job", log: Path, stopped: threading.Event, ended: Callable[[], bool] = lambda: False) -> None:
    """Show a log of the job as it grows, until the job ends or ``ended`` says so.

    When ``stopped`` is set, cancel the job and raise LaunchError.
    """
    from masquerade.pipeline import submitit_internals

    size, queried, failed_looks, done = 0, time.monotonic(), 0, False
    while not done:
        query = time.monotonic() - queried > _STATE_SECONDS
        queried = time.monotonic() if query else queried
        done = ended() or job.done(force_check=query)
        failed_looks = failed_looks + 1 if done and job.state == "NODE_FAIL" else 0
        if 0 < failed_looks < _REQUEUE_LOOKS:  # SLURM has not requeued it yet
            done = False
            submitit_internals.forget_states(job)
        if stopped.wait(0.0 if done else 1.0):
            job.cancel(check=False)
            raise LaunchError(f"stopped; job {job.job_id} is cancelled. Its log is {log}.")
        size += _show(log, size)


def _show(log: Path, start: int) -> int:
    """Write the end of a log, from byte ``start``, to the standard error stream. Returns its number of bytes."""
    if not log.is_file():
        return 0
    with log.open("rb") as file:
        file.seek(start)
        added = file.read()
    sys.stderr.buffer.write(added)
    sys.stderr.flush()
    return len(added)


def conclude(job: "Job", name: str) -> None:
    """Raise LaunchError when a process of the job failed.

    When several failed, the error is that of the first cause, not that of a process which lost contact with another.
    """
    from masquerade.pipeline import submitit_internals
    from masquerade.pipeline.submitit_internals import FailedJobError

    errors = [error for rank in range(job.num_tasks) if (error := job.task(rank).exception()) is not None]
    if not errors:
        return
    error = min(errors, key=lambda error: (process.LOST in str(error), not isinstance(error, FailedJobError)))
    log = submitit_internals.find_log(job)
    if isinstance(error, FailedJobError):
        reason = (
            submitit_internals.read_last_line(error).removeprefix(f"{__name__}.{LaunchError.__name__}: ").rstrip(".")
        )
        raise LaunchError(f"{name} failed as job {job.job_id}: {reason}. Its log is {log}.")
    state = submitit_internals.read_state(job)
    hint = _HINTS.get(state, "Its log may give the reason.")
    raise LaunchError(f"{name} ended as job {job.job_id} without its outputs: {state}. {hint} Its log is {log}.")


@contextmanager
def signals_to_stop() -> Iterator[threading.Event]:
    """Within the block, a signal to stop (Ctrl-C, SIGTERM, a closed terminal) does not end the process.

    It sets the event that the block gets.
    """
    stopped = threading.Event()
    handlers = {
        number: signal.signal(number, lambda *_: stopped.set())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield stopped
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
