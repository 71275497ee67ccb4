"""The block `compute` of params.yaml: where jobs run, and what they request from a cluster."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from masquerade.core.settings import Settings

_OURS = "Masquerade sets it for each job"
TAKEN = {
    "partition": "set `partition`", "account": "set compute.account", "constraint": "set `constraint`",
    "time": "set `minutes`", "mem": "set `memory_gb`", "gpus-per-node": "set `gpus`", "ntasks": "set `tasks`",
    "ntasks-per-node": "set `tasks`", "cpus-per-task": "set compute.threads", "signal": "set compute.grace_seconds",
} | dict.fromkeys(
    ("job-name", "output", "error", "open-mode", "requeue", "no-requeue", "array", "wrap", "chdir", "nodes", "wait",
     "parsable", "quiet", "test-only"),
    _OURS,
)  # fmt: skip
"""Option of sbatch that other parameters set -> what to do instead."""


class LightJobs(Settings):
    """What a job without networks needs of SLURM."""

    partition: str = ""
    """SLURM partition ('' = the cluster's default)."""
    minutes: Annotated[int, Field(ge=1)]
    """Time limit in minutes."""
    memory_gb: Annotated[float, Field(gt=0)]
    """Memory in GiB."""
    options: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], str | int | float | bool] = {}
    """Further options of ``sbatch``, such as ``{qos: long, gres: gpu:a100:2}``; true is an option without a value."""

    @field_validator("options")
    @classmethod
    def _options_are_free(cls, options: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        for option in options.keys() & TAKEN.keys():
            raise ValueError(f"'{option}' is not among the free options: {TAKEN[option]}")
        if options.get("export", "ALL") != "ALL":
            raise ValueError(
                f"'export' is '{options['export']}', and only ALL is allowed: a job needs the variables with which "
                "Snakemake was started. Set further variables before Snakemake starts, or in compute.setup"
            )
        return options


class Submission(LightJobs):
    """What a job with networks needs of SLURM."""

    constraint: str = ""
    """Features that a node must have, in the syntax of ``sbatch --constraint`` ('' = any node)."""
    gpus: Annotated[int, Field(ge=0)]
    """GPUs of one job."""
    tasks: Annotated[int, Field(ge=1)] = 1
    """Processes of one job, on one node; several train data-parallel, each on its share of the GPUs."""


class Inference(Submission):
    """What a job that runs trained networks needs of SLURM, and with how many others it shares a submission."""

    together: Annotated[int, Field(ge=1)] = 8
    """At most so many jobs of one method share a submission, and run one after the other in it."""


class ComputeSettings(Settings):
    """Where jobs run, and what they need."""

    launcher: Literal["in_process", "local", "slurm"]
    """Where trainings and networks run: in the process of the job, in a local process of submitit, or on SLURM."""
    threads: dict[Literal["data", "backbone", "train", "anonymize", "measure"], Annotated[int, Field(ge=1)]]
    """CPU threads of one job of each kind."""
    deterministic: bool
    """Whether a GPU gives the same bytes each time. Convolutions are then computed in 32 bits, without TF32."""
    account: str = ""
    """SLURM account ('' = the user's default)."""
    setup: list[str] = []
    """Shell lines before each submitted training or inference, such as ``module load cuda``."""
    grace_seconds: Annotated[int, Field(ge=1)] = 120
    """Seconds before its time limit at which a job gets the signal to save; longer than one step and one save."""
    requeues: Annotated[int, Field(ge=0)] = 20
    """How often a training may reach its time limit before it fails."""
    light: LightJobs
    """One job of Snakemake's SLURM executor: faces, classical anonymization, measurements, metrics, tables."""
    training: Submission
    """One training."""
    inference: Inference
    """One job that runs trained networks: anonymization, recovery, inversion."""
    overrides: dict[Annotated[str, Field(pattern=r"^(training|inference)/[a-z0-9_]+$")], dict[str, Any]] = {}
    """``training/<name>`` or ``inference/<name>`` -> the values that differ from `training` or `inference`."""

    @model_validator(mode="after")
    def _submissions_are_possible(self) -> "ComputeSettings":
        for job in ["inference/", *self.overrides]:
            if self.submission(*job.split("/")).tasks > 1 and job.startswith("inference"):
                raise ValueError(f"{job.rstrip('/')} must have one task: only trainings use several processes")
        return self

    def submission(self, kind: str, name: str) -> Submission:
        """What a job of ``kind`` (``training`` or ``inference``) for the method or backbone ``name`` needs of SLURM."""
        block: Submission = getattr(self, kind)
        return type(block)(**block.model_dump() | self.overrides.get(f"{kind}/{name}", {}))
