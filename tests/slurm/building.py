"""Working copies on the cluster of the tests, and their builds."""

import os
import signal
import subprocess

from cluster import Cluster, wait

from repository import Repository

IDENTITY = "checkpoints/tiny/backbones/identity.safetensors"
PARSING = "checkpoints/tiny/backbones/parsing.safetensors"
LOG = "logs/tiny/backbones/identity.log"
METHOD = "checkpoints/tiny/methods/identitydp/0.safetensors"  # is built on IDENTITY
FIT = "checkpoints/tiny/methods/fit/0.safetensors"
HURRY = "logs/hurry"
STREAM = '    stream = "recognition"\n'


class Build:
    """A running `snakemake --profile slurm` with a process group of its own, as in a terminal."""

    def __init__(self, repository: Repository, *targets: str):
        self.log = repository.path / "build.log"
        self._repository = repository
        with self.log.open("w") as file:
            self._process = subprocess.Popen(
                ["snakemake", "--profile", "slurm", "--", *targets], cwd=repository.path, stdout=file, stderr=file,
                env=repository.environment, start_new_session=True,
            )  # fmt: skip

    def interrupt(self) -> None:
        """Ctrl-C reaches the whole foreground process group."""
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self, fails: bool = False, seconds: float = 600) -> str:
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.interrupt()
            raise
        output = self.log.read_text()
        assert (code != 0) == fails, output[-6000:]
        return output


def slowed(repository: Repository, seconds: float) -> Repository:
    """Make every step of a recognizer's training log itself and wait first, until `hurried`. No number changes.

    The log of its last run is deleted.
    """
    (repository.path / LOG).unlink(missing_ok=True)
    source = "src/masquerade/backbones/recognition/training.py"
    slow = f"""
    def step(self, step):
        import pathlib, time
        logger.info('in step %d', step)
        end = time.monotonic() + {seconds}
        while time.monotonic() < end and not pathlib.Path("{HURRY}").exists():
            time.sleep(0.1)
        return super().step(step)
"""
    repository.edit(source, STREAM, STREAM + slow)
    return repository


def hurried(repository: Repository) -> None:
    """Let the steps of a training that is `slowed` wait no longer."""
    (repository.path / HURRY).touch()


def in_partition(repository: Repository, name: str) -> Repository:
    """Let every kind of job run in this partition."""
    for kind in ("light", "training", "inference"):
        repository.edit_params(lambda tree, kind=kind: tree["compute"][kind].update(partition=name))
    return repository


def running(cluster: Cluster, repository: Repository, name: str) -> dict[str, str]:
    """The working copy's job whose name holds ``name``. Waits until it is running."""
    jobs, mine = [], str(repository.path)

    def runs() -> bool:
        jobs[:] = [
            job for job in cluster.queue()
            if name in job["name"] and job["folder"] == mine and job["state"] == "RUNNING"
        ]  # fmt: skip
        return bool(jobs)

    wait(f"a running job '{name}'", runs, seconds=240)
    return jobs[0]


def training(cluster: Cluster, repository: Repository) -> dict[str, str]:
    """The working copy's job that trains the network of IDENTITY. Waits until it is in its first step."""
    job, log = running(cluster, repository, "training identity"), repository.path / LOG
    wait("the first step", lambda: "in step 0" in log.read_text(), seconds=240)
    return job


def restarts(cluster: Cluster, job: str) -> int:
    """The number of times that a job was requeued."""
    return len(cluster.run("sacct", "-X", "-n", "-D", "-j", job, "-o", "State").split("\n")) - 2


def rules_of(output: str) -> list[str]:
    """The rules of the finished jobs in the output of Snakemake."""
    return [line.split("Rule: ")[1].rstrip(")") for line in output.splitlines() if line.startswith("Finished jobid")]
