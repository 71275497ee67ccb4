"""What a rule declares of its job: the shell command, and the resources that submitit or Snakemake request of SLURM."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal

from masquerade.params.compute import ComputeSettings
from masquerade.pipeline import launch

Threads = Literal["data", "backbone", "train", "anonymize", "measure"]
"""The keys of `ComputeSettings.threads`."""

KINDS = ("light", "training", "inference")
"""The kinds of jobs that `compute` in params.yaml describes."""
BRIEF_MINUTES, BRIEF_MEMORY_MB = 5, 4096
"""The most that a metric or a table needs."""


NAMED = {"qos": "qos", "gres": "gres", "mem-per-cpu": "mem_mb_per_cpu"}
"""Option of sbatch -> the resource by which Snakemake's SLURM executor takes it. `slurm_extra` holds all others."""


def make_light_resources(compute: ComputeSettings) -> dict[str, Any]:
    """Resources of a job of Snakemake's own executor, which sets the options comment and export (ALL) itself."""
    given = {key: value for key, value in compute.light.options.items() if value is not False}
    options = {key: value for key, value in given.items() if key not in ("comment", "export")}
    resources: dict[str, Any] = {"runtime": compute.light.minutes}
    if not launch.MEMORY & options.keys():
        resources["mem_mb"] = int(compute.light.memory_gb * 1024)
    resources |= {resource: str(options.pop(option)) for option, resource in NAMED.items() if option in options}
    if options:
        words = (
            f"--{key}" if value is True else f"--{key}={shlex.quote(str(value))}" for key, value in options.items()
        )
        resources["slurm_extra"] = " ".join(words)
    if compute.light.partition:
        resources["slurm_partition"] = compute.light.partition
    if compute.account:
        resources["slurm_account"] = compute.account
    return resources


def make_brief_resources(compute: ComputeSettings) -> dict[str, Any]:
    """Resources of a metric or a table, which takes seconds and little memory."""
    resources = make_light_resources(compute)
    most = {"runtime": BRIEF_MINUTES, "mem_mb": BRIEF_MEMORY_MB}
    return {key: min(value, most[key]) if key in most else value for key, value in resources.items()}


def make_submission(
    compute: ComputeSettings, logs: str, kind: str, name: str | Callable[[Any], str], threads: Threads
) -> dict[str, Any]:
    """Resources of a job that may go to a GPU: its launcher, and submitit's request to the cluster as JSON.

    ``name``, or the function of the wildcards that gives it, selects an entry of `compute.overrides`. ``threads`` is a
    key of `compute.threads`. None of this triggers a job: it decides where a number is made, not which number.
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


def read_slurm_settings() -> dict[str, str]:
    """The variables by which the programs of SLURM find its configuration."""
    return {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}


def forget_outer_job(kept: Mapping[str, str]) -> None:
    """Remove the variables of the SLURM job in which this process runs, so that no job that it submits inherits them.

    SLURM would take the outer job's memory and processors for those of the inner one. ``kept`` stays or comes back.
    """
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        del os.environ[name]
    os.environ.update(kept)


def prepare_submission(compute: ComputeSettings, submits: bool, kept: Mapping[str, str]) -> None:
    """Forget the outer job and the site's defaults before anything is submitted.

    Raises MasqueradeError if the cluster lacks a partition that params.yaml names.
    ``submits``: whether Snakemake's executor sends jobs to a cluster. ``kept``: see `forget_outer_job`.
    """
    if not (submits or compute.launcher == "slurm"):
        return
    forget_outer_job(kept)
    launch.forget_defaults()
    partitions = {f"compute.{kind}.partition": getattr(compute, kind).partition for kind in KINDS}
    partitions |= {
        f"compute.overrides.{job}.partition": knobs.get("partition", "") for job, knobs in compute.overrides.items()
    }
    launch.check_partitions(partitions)


METHOD_OPTIONS = (
    "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed} "
    "--checkpoint {input.checkpoint} --backbones {input.backbones} --gallery {input.gallery} "
    "--fakes {input.fakes} --latents {input.latents} --images {input.images}"
)
"""The options of a program that uses a method; its rule has the inputs `MethodInputs.files`."""


def run_here(script: str, *options: str, outputs: str = "{output}") -> str:
    """The command that runs ``workflow/scripts/<script>.py`` in the job itself."""
    return f"python {_write_command(script, options, outputs)}"


def run_launched(script: str, *options: str, outputs: str = "{output}") -> str:
    """The command that starts ``workflow/scripts/<script>.py`` where `compute.launcher` says: here or on a cluster."""
    launcher = "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
    return f"{launcher} {_write_command(script, options, outputs)}"


def _write_command(script: str, options: tuple[str, ...], outputs: str) -> str:
    common = "--params {params.cfg:q} --code {input.code} --threads {threads}"
    words = (f"workflow/scripts/{script}.py", common, *options, f"--outputs {outputs}", "> {log} 2>&1")
    return " ".join(words)
