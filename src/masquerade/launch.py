"""Where a training runs: in this process, in a process of its own here, or on SLURM; the same call, the same object.

A `Training` is small and stateless: paths, parameters and a seed. What must survive an interruption lies in its
``state`` file, so that submitit can requeue it and the loop goes on where it was.
"""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade import discovery, steps
from masquerade.backbones import Backbone
from masquerade.errors import MasqueradeError
from masquerade.lineage import provenance
from masquerade.methods import TrainingJob
from masquerade.tracking import Run

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission


logger = logging.getLogger(__name__)


class BelowFloor(MasqueradeError):
    """A backbone was trained and is too poor to judge or to train anything with."""


@dataclass(frozen=True)
class Training:
    """One training of a method (``room='methods'``) or a backbone (``room='backbones'``)."""

    room: str
    name: str
    params: Mapping[str, Any]
    faces: Path
    backbones: Mapping[str, Path]
    checkpoint_file: Path
    quality: Path | None
    state: Path
    seed: int
    threads: int
    run: str
    base: Path | None = None

    def __call__(self) -> dict[str, Any]:
        """Train; returns the machine that did it."""
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
        record = Run(self.run)
        job = TrainingJob(
            self.faces,
            self.backbones,
            self.checkpoint_file,
            self.state,
            self.seed,
            self.threads,
            record.log,
            record.picture,
            self.base,
        )
        cls = discovery.load(self.room, self.name)
        params = cls.Params(**self.params)
        if self.room == "methods":
            cls.train(params, job)
        else:
            self._judge(cls(params), job, record)
        return provenance.machine()

    def _judge(self, backbone: Backbone, job: TrainingJob, record: Run) -> None:
        about = {"backbone": self.name, "title": backbone.title, "published": "", "sha256": ""}
        if backbone.published:
            about |= {"published": str(backbone.published), "sha256": backbone.check_published()}
            backbone.adopt(backbone.published, job)
        else:
            backbone.train(job)
        figures = backbone.quality(job)
        logger.info("%s on unseen identities: %s", self.name, ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
        record.log(0, {f"quality/{name}": value for name, value in figures.items()})
        floors = backbone.floors()
        poor = {name: (figures[name], floor) for name, floor in floors.items() if not figures[name] >= floor}
        if poor:
            job.checkpoint.unlink(missing_ok=True)
            told = "; ".join(
                f"{name} is {value:.4f}, the floor is {floor:.4f}" for name, (value, floor) in poor.items()
            )
            raise BelowFloor(
                f"backbone '{self.name}' is too poor to build on: {told}. Train it longer or on more identities "
                f"(params.yaml, backbones.{self.name}), or lower its floors there if you know why."
            )
        steps.write_json(self.quality, {**about, "quality": figures, "floors": floors})

    def checkpoint(self, *_: Any) -> "DelayedSubmission":
        """submitit calls this when the job is pre-empted or runs out of time: the same training, once more."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run(training: Training, launcher: str, resources: Mapping[str, Any], logs: Path) -> dict[str, Any]:
    """Run ``training`` to its end with ``launcher`` (``in_process``, ``local`` or ``slurm``).

    Returns the machine that did it.

    Raises MasqueradeError, in one paragraph with the path of the log, where the job failed.
    """
    if launcher == "in_process":
        return training()
    import submitit
    from submitit.core.utils import FailedJobError, UncompletedJobError

    logs.mkdir(parents=True, exist_ok=True)
    executor = submitit.AutoExecutor(folder=str(logs), cluster=launcher)
    wanted = {
        "name": f"masquerade-{training.name}",
        "timeout_min": resources["minutes"],
        "cpus_per_task": training.threads,
        "gpus_per_node": resources["gpus"],
        "mem_gb": resources["memory_gb"],
    }
    if launcher == "slurm":
        options = {"slurm_partition": resources["partition"], "slurm_account": resources["account"]}
        wanted |= {key: value for key, value in options.items() if value}
        executor.update_parameters(slurm_python=sys.executable)
    executor.update_parameters(**wanted)
    job = executor.submit(training)
    Run(training.run).tag({"submitit.job_id": str(job.job_id), "submitit.log": str(job.paths.stderr)})
    try:
        return job.result()
    except (FailedJobError, UncompletedJobError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise MasqueradeError(
            f"training '{training.name}' failed ({reason}); its log is {job.paths.stderr}."
        ) from error
