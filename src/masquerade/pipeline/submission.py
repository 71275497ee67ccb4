"""The resources of a job: what submitit or Snakemake's SLURM executor requests from the cluster."""

import json
from collections.abc import Callable
from typing import Any, Literal

from masquerade.params.blocks import ComputeSettings
from masquerade.pipeline import launch

Threads = Literal["data", "backbone", "train", "anonymize", "measure"]
"""The keys of `ComputeSettings.threads`."""

KINDS = ("light", "training", "inference")
"""The kinds of jobs that `compute` in params.yaml describes."""
BRIEF_MINUTES, BRIEF_MEMORY_MB = 5, 4096
"""The most that a metric or a table needs."""


def light(compute: ComputeSettings) -> dict[str, Any]:
    """Resources of a job of Snakemake's own executor."""
    resources: dict[str, Any] = {
        "runtime": compute.light.minutes,
        "mem_mb": int(compute.light.memory_gb * 1024),
    }
    if compute.light.partition:
        resources["slurm_partition"] = compute.light.partition
    if compute.account:
        resources["slurm_account"] = compute.account
    return resources


def brief(compute: ComputeSettings) -> dict[str, Any]:
    """Resources of a metric or a table, which takes seconds and little memory."""
    resources = light(compute)
    return resources | {
        "runtime": min(BRIEF_MINUTES, resources["runtime"]),
        "mem_mb": min(BRIEF_MEMORY_MB, resources["mem_mb"]),
    }


def submitted(
    compute: ComputeSettings, logs: str, kind: str, name: str | Callable[[Any], str], threads: Threads
) -> dict[str, Any]:
    """Resources of a job that may go to a GPU: its launcher, and submitit's request to the cluster as JSON.

    ``name``, or the function of the wildcards that gives it, selects an entry of `compute.own`. ``threads`` is a key of
    `compute.threads`. None of this triggers a job: it decides where a number is made, not which number.
    """

    def submission(wildcards: Any) -> str:
        job = name(wildcards) if callable(name) else name
        shared = {key: getattr(compute, key) for key in ("account", "setup", "grace_seconds", "requeues")}
        details = {
            "name": f"{kind} {job}",
            "cpus": compute.threads[threads],
            "resumable": kind == "training",
            "logs": logs,
        }
        return json.dumps(compute.submission(kind, job).model_dump() | shared | details)

    return {"launcher": compute.launcher, "submission": submission}


def check_partitions(compute: ComputeSettings, submits: bool) -> None:
    """Raise MasqueradeError if the cluster lacks a partition that params.yaml names.

    ``submits``: whether Snakemake's executor sends jobs to a cluster.
    """
    if not (submits or compute.launcher == "slurm"):
        return
    partitions = {f"compute.{kind}.partition": getattr(compute, kind).partition for kind in KINDS}
    partitions |= {f"compute.own.{job}.partition": knobs.get("partition", "") for job, knobs in compute.own.items()}
    launch.check_partitions(partitions)
