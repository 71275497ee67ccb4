"""`snakemake --profile slurm all` on a real SLURM: the whole matrix, and interrupted, requeued and failed jobs."""

import json
import os
import signal
import sqlite3
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from cluster import Cluster, wait
from safetensors.numpy import load_file

from repository import Repository

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

IDENTITY = "checkpoints/tiny/backbones/identity.safetensors"
PARSING = "checkpoints/tiny/backbones/parsing.safetensors"
METHOD = "checkpoints/tiny/methods/identitydp/0.safetensors"  # is built on IDENTITY
STEP = "        share = warmup_cosine_share(step, self.params.steps)\n"


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
    """Make every step of a recogniser's training sleep first. No number changes."""
    source = "src/masquerade/backbones/_recognition/training.py"
    repository.edit(source, STEP, f"        __import__('time').sleep({seconds})\n{STEP}")
    return repository


def running(cluster: Cluster, repository: Repository, name: str, seconds: float = 0) -> dict[str, str]:
    """The working copy's job whose name holds ``name``. Waits until it has been running for ``seconds``."""
    jobs, mine = [], str(repository.path)

    def runs() -> bool:
        jobs[:] = [
            job for job in cluster.queue()
            if name in job["name"] and job["folder"] == mine and job["state"] == "RUNNING"
        ]  # fmt: skip
        return bool(jobs) and datetime.now() - datetime.fromisoformat(jobs[0]["began"]) > timedelta(seconds=seconds)

    wait(f"a running job '{name}'", runs, seconds=240)
    return jobs[0]


def restarts(cluster: Cluster, job: str) -> int:
    """The number of times that a job was requeued."""
    return len(cluster.run("sacct", "-X", "-n", "-D", "-j", job, "-o", "State").split("\n")) - 2


def test_whole_matrix_is_built_by_the_literal_command(built_once, cluster):
    graph = (
        "import json; from masquerade.lineage import versioning\n"
        "jobs, stale = versioning.graph()\n"
        "print('JOBS', json.dumps([len(jobs), len(stale), sorted(str(f) for job in jobs for f in job.output)]))"
    )
    output = built_once.run("python", "-c", graph)
    count, stale, outputs = json.loads(output.split("JOBS ")[-1].splitlines()[0])
    assert stale == 0
    assert [name for name in outputs if not (built_once.path / name).is_file()] == []
    mine = cluster.jobs_of(built_once.path)
    assert {job["State"] for job in mine} == {"COMPLETED"}
    assert len(mine) < count * 2 / 3, "short jobs are submitted in groups"


def test_second_build_has_nothing_to_do(built):
    assert "Nothing to be done" in built.run("snakemake", "--profile", "slurm", "all")


def test_only_trainings_and_networks_have_a_gpu(built_once, cluster):
    mine = cluster.jobs_of(built_once.path)
    submitted = [job for job in mine if job["JobName"].startswith("masquerade ")]
    assert {job["ReqTRES"].count("gres/gpu=1") for job in submitted} == {1}
    assert {job["ReqTRES"].count("gpu") for job in mine if job not in submitted} == {0}


def test_every_run_has_its_slurm_job_and_submitted_ones_their_log(built_once, cluster):
    store = sqlite3.connect(built_once.path / "mlflow.db")
    tagged = {value for (value,) in store.execute("SELECT value FROM tags WHERE key = 'slurm.job_id'")}
    untagged = store.execute(
        "SELECT name FROM runs WHERE name NOT LIKE 'build %' AND run_uuid NOT IN "
        "(SELECT run_uuid FROM tags WHERE key = 'slurm.job_id')"
    ).fetchall()
    assert untagged == []
    assert tagged == {job["JobIDRaw"] for job in cluster.jobs_of(built_once.path)}
    kept = list((built_once.path / "mlruns").rglob("*_log.err"))
    assert len(kept) == sum(job["JobName"].startswith("masquerade ") for job in cluster.jobs_of(built_once.path))


def test_log_of_a_training_is_that_of_its_rule(built_once):
    log = (built_once.path / "logs/tiny/backbones/identity.log").read_text()
    assert "training identity is slurm job" in log
    assert "identity on unseen identities" in log


def test_training_that_reaches_its_time_limit_is_requeued_and_gives_the_same_bytes(built, cluster):
    whole = (built.path / IDENTITY).read_bytes()
    slowed(built, 20)  # four steps: 80 s, of one minute
    built.edit_params(lambda tree: tree["compute"].update(own={"training/identity": {"minutes": 1}}, grace_seconds=35))
    build = Build(built, IDENTITY)
    job = running(cluster, built, "training identity")
    build.end()
    assert restarts(cluster, job["id"]) >= 1
    assert "resumed from" in (built.path / "logs/tiny/backbones/identity.log").read_text()
    assert (built.path / IDENTITY).read_bytes() == whole


def test_pre_empted_training_is_requeued_and_gives_the_same_bytes(built, cluster):
    whole = (built.path / IDENTITY).read_bytes()
    build = Build(slowed(built, 20), IDENTITY)  # four steps: longer than the grace of a pre-empted job, 30 s
    job = running(cluster, built, "training identity", seconds=15)
    cluster.run(
        "sbatch", "-p", "urgent", "-w", job["node"], "--exclusive", "--mem=0", "-o", "/dev/null", "--wrap", "sleep 1"
    )
    build.end()
    assert restarts(cluster, job["id"]) >= 1
    assert "resumed from" in (built.path / "logs/tiny/backbones/identity.log").read_text()
    assert (built.path / IDENTITY).read_bytes() == whole


def test_training_that_ends_while_it_is_pre_empted_is_not_run_again(built, cluster):
    log = built.path / "logs/tiny/backbones/identity.log"
    build = Build(slowed(built, 5), IDENTITY)  # ends within the grace
    job = running(cluster, built, "training identity", seconds=8)
    cluster.run(
        "sbatch", "-p", "urgent", "-w", job["node"], "--exclusive", "--mem=0", "-o", "/dev/null", "--wrap", "sleep 1"
    )
    build.end()
    wait("the end of the requeued job", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=120)
    submitted = Path(log.read_text().split("its log: ")[1].splitlines()[0])
    assert submitted.read_text().count("training on 24 pictures") == 1


def test_training_continues_on_another_node_when_its_node_is_down(built, cluster):
    whole = (built.path / IDENTITY).read_bytes()
    build = Build(slowed(built, 12), IDENTITY)
    job = running(cluster, built, "training identity", seconds=20)
    cluster.set_node(job["node"], "down")
    try:
        build.end()
    finally:
        cluster.set_node(job["node"], "resume")
    last = cluster.jobs_of(built.path)[-1]
    assert (last["JobIDRaw"], last["NodeList"] != job["node"]) == (job["id"], True)
    assert (built.path / IDENTITY).read_bytes() == whole


def test_training_of_two_processes_equals_that_of_one_except_for_rounding(built, cluster):
    checkpoint = built.path / "checkpoints/tiny/methods/fit/0.safetensors"
    alone = load_file(checkpoint)
    checkpoint.unlink()
    built.edit_params(lambda tree: tree["compute"].update(own={"training/fit": {"tasks": 2, "gpus": 2}}))
    built.run("snakemake", "--profile", "slurm", "--", str(checkpoint.relative_to(built.path)))
    together = load_file(checkpoint)
    assert together.keys() == alone.keys()
    for name, weight in alone.items():
        np.testing.assert_allclose(together[name], weight, atol=2e-3, err_msg=name)
    (job,) = [job for job in cluster.jobs_of(built.path) if job["JobName"] == "masquerade training fit"]
    assert "cpu=2" in job["ReqTRES"]


def test_cancelled_job_fails_only_what_depends_on_it(built, cluster):
    for file in (IDENTITY, PARSING, METHOD):
        (built.path / file).unlink()
    slowed(built, 5)
    build = Build(built, METHOD, PARSING)
    job = running(cluster, built, "training identity")
    cluster.run("scancel", job["id"])
    output = build.end(fails=True)
    assert f"training identity ended as job {job['id']} without its outputs: CANCELLED. Somebody cancelled it" in output
    assert (built.path / PARSING).is_file()
    assert not (built.path / METHOD).exists()
    again = built.run("snakemake", "--profile", "slurm", "--", METHOD, PARSING)
    assert (built.path / METHOD).is_file()
    assert sorted(rules_of(again)) == ["backbone", "method"]


def rules_of(output: str) -> list[str]:
    """The rules of the finished jobs in the output of Snakemake."""
    return [line.split("Rule: ")[1].rstrip(")") for line in output.splitlines() if line.startswith("Finished jobid")]


@pytest.mark.parametrize("kind", ["training", "light"])
def test_unknown_partition_is_named_before_any_job_runs(sources, tmp_path, kind):
    repository = sources.copy(tmp_path / "repository")
    repository.edit_params(lambda tree: tree["compute"][kind].update(partition="nope"))
    output = repository.run("snakemake", "--profile", "slurm", "all", fails=True)
    assert f"compute.{kind}.partition is 'nope'. This cluster has: main, urgent." in output
    assert "Finished jobid" not in output


def test_interrupting_snakemake_cancels_what_it_submitted(built, cluster):
    (built.path / IDENTITY).unlink()
    build = Build(slowed(built, 60), IDENTITY)
    job = running(cluster, built, "training identity")
    build.interrupt()
    build.end(fails=True, seconds=60)
    wait("the job's end", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=30)


def test_two_working_copies_build_side_by_side(sources, built_once, cluster, tmp_path):
    copies = [sources.copy(tmp_path / name) for name in ("one", "two")]
    builds = [Build(copy, METHOD) for copy in copies]
    for build in builds:
        build.end()
    whole = (built_once.path / METHOD).read_bytes()
    assert [(copy.path / METHOD).read_bytes() == whole for copy in copies] == [True, True]
    for copy in copies:
        assert {job["State"] for job in cluster.jobs_of(copy.path)} == {"COMPLETED"}


def test_error_of_a_failing_step_is_one_paragraph_with_its_log(sources, tmp_path):
    repository = sources.copy(tmp_path / "repository")
    repository.edit_params(
        lambda tree: tree["backbones"]["recogniser_a"]["recognition"].update(floor_auc=1.0), "scales/tiny.yaml"
    )
    output = repository.run(
        "snakemake", "--profile", "slurm", "--", "checkpoints/tiny/backbones/recogniser_a.safetensors", fails=True
    )
    line = next(line for line in output.splitlines() if "training recogniser_a failed as job" in line)
    assert "backbone 'recogniser_a' is too poor to build on: auc is" in line
    assert Path(line.split("Its log is ")[1].rstrip(".")).is_file()
