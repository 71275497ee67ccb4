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
    """SLURM partition; an empty text takes the default of the cluster."""
    minutes: Annotated[int, Field(ge=1)]
    """Time limit of one job in minutes."""
    memory_gb: Annotated[float, Field(gt=0)]
    """Memory of one job in GiB."""
    options: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], str | int | float | bool] = {}
    """Further options of ``sbatch``, such as ``{qos: long, gres: gpu:a100:2}``; true stands for an option without a
    value."""

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
    """Features that a node must have, in the syntax of ``sbatch --constraint``; an empty text accepts any node."""
    gpus: Annotated[int, Field(ge=0)]
    """Number of GPUs of one job."""
    tasks: Annotated[int, Field(ge=1)] = 1
    """Number of processes of one job, all on one node. Several processes train data-parallel, each with its share of
    the GPUs."""


class Inference(Submission):
    """What a job that runs trained networks needs of SLURM, and with how many others it shares a submission."""

    together: Annotated[int, Field(ge=1)] = 8
    """Largest number of jobs of one method that share a submission, in which they run one after the other."""


class ComputeSettings(Settings):
    """Where jobs run, and what they need."""

    launcher: Literal["in_process", "local", "slurm"]
    """Where trainings and networks run: in_process in the process of the job, local in another local process by
    submitit, slurm on a cluster."""
    threads: dict[Literal["data", "backbone", "train", "anonymize", "measure"], Annotated[int, Field(ge=1)]]
    """Number of CPU threads of one job of each kind."""
    deterministic: bool
    """Whether a GPU gives the same bytes each time, which is slower. Convolutions are then computed in 32 bits, without
    TF32 (docs/cluster.md)."""
    account: str = ""
    """SLURM account; an empty text takes the default of the user."""
    setup: list[str] = []
    """Shell lines that run before each submitted training or inference, such as ``module load cuda``."""
    grace_seconds: Annotated[int, Field(ge=1)] = 120
    """How many seconds before its time limit a job receives the signal to save its state. This must be longer than one
    step and one save."""
    requeues: Annotated[int, Field(ge=0)] = 20
    """How many times a training may reach its time limit and be requeued before it fails."""
    light: LightJobs
    """The resources of a job without networks: faces, classical anonymization, measurements, metrics, tables."""
    training: Submission
    """The resources of one training."""
    inference: Inference
    """The resources of one job that runs trained networks: anonymization, recovery, inversion."""
    overrides: dict[Annotated[str, Field(pattern=r"^(training|inference)/[a-z0-9_]+$")], dict[str, Any]] = {}
    """For ``training/<name>`` or ``inference/<name>`` of a single method or backbone, the values that replace those of
    `training` or `inference`."""

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
