"""What Masquerade uses of submitit beyond its public interface, in one place.

``tests/unit/test_launch.py`` fails when an installed submitit differs from VERSION in these parts.
"""

import re
from pathlib import Path

from submitit import Job, JobEnvironment, SlurmJob
from submitit.core.utils import FailedJobError
from submitit.helpers import DelayedSubmission

__all__ = ["DelayedSubmission", "FailedJobError", "Job"]

VERSION = "1.5.4"
"""The version of submitit for which this module is written."""
RULE = "-" * 22
"""The line before and after the traceback in the text of a FailedJobError."""


def has_result() -> bool:
    """Whether the job that this process belongs to has ended before. Its result is then in a file."""
    return JobEnvironment().paths.result_pickle.is_file()


def find_own_log() -> Path:
    """The log of the job that this process belongs to."""
    return JobEnvironment().paths.stderr


def find_slurm_job(folder: str, number: str) -> Job:
    """The job with this number, which another process submitted with ``folder`` for its files."""
    return SlurmJob(folder, number)


def find_log(job: Job) -> Path:
    """The log of a job. If the job has several processes, the log of the first."""
    return job.task(0).paths.stderr


def forget_states(job: Job) -> None:
    """Forget the states of all jobs, so that the next one comes from the cluster, even for a job that has ended."""
    job.watcher.clear()


def read_state(job: Job) -> str:
    """The state of a job by the cluster, ``COMPLETED``, ``TIMEOUT`` ...; ``UNKNOWN`` when the cluster has none."""
    return job.get_info(mode="force").get("State", "UNKNOWN").split()[0]


def read_last_line(error: FailedJobError) -> str:
    """The last line of the traceback of a job that failed: ``<class>: <text>``."""
    traceback = str(error).split(RULE)[1]
    return [line for line in traceback.splitlines() if line.strip()][-1]


def read_refusals(error: Exception) -> list[str]:
    """The reasons why ``sbatch`` refused a job, as it printed them; else the text of the error."""
    return re.findall(r"error: (.+)", str(error)) or [str(error)]
