"""What Masquerade uses of Snakemake beyond its public interface, in one place.

``tests/unit/test_snakemake_internals.py`` fails when an installed Snakemake differs from VERSION in these parts.
"""

import ast
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.params import paths

if TYPE_CHECKING:
    from snakemake.jobs import Job
    from snakemake.workflow import Workflow

VERSION = "9.27.1"
"""The version of Snakemake for which this module is written."""
RECORDS = Path(".snakemake/metadata")
"""Snakemake's records of outputs: JSON of format 6."""
INCOMPLETE = Path(".snakemake/incomplete")
"""Marks of outputs whose job was interrupted."""
LOCKS = Path(".snakemake/locks")
"""Files that are here while a build runs, and after one that was killed."""
_LONGEST_NAME = 254
_HANDED = "--target-jobs"


def announce_file(workflow: "Workflow", path: str) -> None:
    """Tell Snakemake of a file that planning wrote just now, and make the file newer than every output.

    Snakemake lists a folder once and does not see later files. It compares the content of an input only if the input
    is newer than the outputs.
    """
    os.utime(path)
    workflow.iocache.exists_local[path] = True


def schedule_on_job_end(workflow: "Workflow") -> None:
    """Let the scheduler look at the waiting jobs only when a job has ended.

    Its limit of jobs a second (100) starts a new chain of looks, one a second, with each job that ends. A hundred
    chains keep a processor core busy.
    """
    workflow.scheduler.job_rate_limiter = None


def log_group_errors() -> None:
    """Log the reason that an executor gives when a group of jobs fails. Snakemake drops it."""
    from snakemake.jobs import GroupJob
    from snakemake.logging import logger

    log_error = GroupJob.log_error

    def log_error_with_reason(group: GroupJob, msg: str | None = None, **details: Any) -> None:
        log_error(group, msg, **details)
        if msg:
            logger.error(f"Group {group.groupid}: {msg}")

    GroupJob.log_error = log_error_with_reason


def account_for_jobs(usage: Callable[[int], Mapping[str, float]]) -> None:
    """Write into Snakemake's benchmark files what ``usage`` says of the job of a shell's process.

    Snakemake measures the processes below the shell. A job that another process forked is not among them. What
    ``usage`` does not say of such a job becomes "-".
    """
    from snakemake import benchmark

    measured = benchmark.benchmarked

    @contextmanager
    def with_job(pid: int, of_job: benchmark.BenchmarkRecord) -> Iterator[benchmark.BenchmarkRecord]:
        with measured(pid, of_job) as record:
            yield record
        if used := usage(pid):
            record.data_collected = True
            record.max_vms = record.max_uss = record.max_pss = None
            vars(record).update(used)
            record.cpu_usage = 100 * record.cpu_time  # mean_load is a percentage

    benchmark.benchmarked = with_job


def list_pending_inputs(workflow: "Workflow") -> set[str]:
    """The input files of all jobs that are going to run."""
    return {str(path) for job in workflow.dag.needrun_jobs() for path in job.input}


def count_pending_jobs(workflow: "Workflow") -> int:
    """The number of jobs that are going to run."""
    return len(list(workflow.dag.needrun_jobs()))


def count_handed_jobs(workflow: "Workflow", words: Sequence[str]) -> int:
    """The number of jobs that another Snakemake handed to this one on its command line ``words``, as on SLURM."""
    if workflow.is_main_process or _HANDED not in words:
        return 0
    return len(list(takewhile(lambda word: not word.startswith("--"), words[words.index(_HANDED) + 1 :])))


def submits_jobs(workflow: "Workflow") -> bool:
    """Whether an executor sends jobs to a cluster."""
    return bool(workflow.non_local_exec)


def touches(workflow: "Workflow") -> bool:
    """Whether Snakemake was started with ``--touch``."""
    return bool(workflow.touch)


def plan_jobs(force_all: bool = False) -> tuple[list["Job"], set["Job"]]:
    """Every job of `rule all`, and the jobs that are out of date (all jobs if ``force_all``)."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import DAGSettings, OutputSettings, Quietness, ResourceSettings

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(ResourceSettings(cores=1), snakefile=Path("Snakefile"))
        settings = DAGSettings(
            targets={"all"}, max_checksum_file_size=10**15, forceall=force_all, force_incomplete=True
        )
        workflow.dag(settings)
        inner = workflow._workflow
        inner._prepare_dag(forceall=force_all, ignore_incomplete=False, lock_warn_only=True, nolock=True)
        inner._build_dag()
        jobs = [job for job in inner.dag.jobs if job.output]
        return jobs, {job for job in inner.dag.needrun_jobs() if job.output}


def is_locked(root: Path) -> bool:
    """Whether a build runs below ``root``, or was killed."""
    return any((root / LOCKS).glob("*"))


def any_incomplete(root: Path) -> bool:
    """Whether an output has the mark of an interrupted job."""
    return any(path.is_file() for path in (root / INCOMPLETE).rglob("*"))


def record_path(output: str) -> str:
    """Where Snakemake keeps its record of an output."""
    return _encode_path(RECORDS, output)


def incomplete_path(output: str) -> str:
    """Where Snakemake marks an output whose job was interrupted."""
    return _encode_path(INCOMPLETE, output)


def _encode_path(folder: Path, output: str) -> str:
    encoded = urlsafe_b64encode(output.encode()).decode()
    parts = [encoded[start : start + _LONGEST_NAME] for start in range(0, len(encoded), _LONGEST_NAME)]
    return "/".join([folder.as_posix(), *(f"@{part}" for part in parts[:-1]), parts[-1]])


def list_recorded_outputs(root: Path) -> set[str]:
    """Every output that has a record below ``root``."""
    folder = root / RECORDS
    names = (("".join(part.removeprefix("@") for part in path.relative_to(folder).parts), path)
             for path in (folder.rglob("*") if folder.is_dir() else ()))  # fmt: skip
    return {urlsafe_b64decode(name).decode() for name, path in names if path.is_file() and not name.startswith(".")}


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """What Snakemake keeps of one output."""

    rule: str
    command: str
    template: str
    """The command of the rule, before names were filled in."""
    inputs: Mapping[str, str]
    """Path -> sha256 of each input as the job read it, without the fingerprints of its code; '' if there is none."""
    code: str
    """The file with the fingerprints of its code, '' if it has none."""
    code_sha256: str
    params: Mapping[str, Any]
    """The job's slice of the parameters, by dotted keys."""
    declared_environment: str
    """environment.yml as it was, base64."""
    started: float
    """Seconds since 1970."""
    ended: float


def parse_output_record(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an `OutputRecord` from the JSON of Snakemake's record."""
    checksums = content["input_checksums"] or {}
    inputs = {path: checksums.get(path, "").removeprefix("sha256:") for path in sorted(set(content["input"]))}
    code = next((path for path in inputs if path.startswith(f"{paths.CODE}/")), "")
    return {
        "rule": content["rule"],
        "command": content["shellcmd"] or "",
        "template": content["code"] or "",
        "code": code,
        "code_sha256": inputs.pop(code, ""),
        "inputs": inputs,
        "params": _parse_slice(content["params"]),
        "declared_environment": content["conda_env"] or "",
        "started": content["starttime"],
        "ended": content["endtime"],
    }


def read_input_hashes(output: str) -> dict[str, str]:
    """Path -> ``sha256:...`` of each input as the job of this output read it; empty if the output has no record."""
    file = Path(record_path(output))
    return json.loads(file.read_text(encoding="utf-8"))["input_checksums"] if file.is_file() else {}


def _parse_slice(params: list[str]) -> dict[str, Any]:
    """The one of the rule's ``params`` that is a JSON mapping. Snakemake keeps each as a Python literal."""
    for text in params:
        value = ast.literal_eval(text)
        if isinstance(value, str) and value.startswith("{"):
            return json.loads(value)
    return {}
