"""`snakemake --profile slurm all` on a real SLURM: the whole matrix, and interrupted, requeued and failed jobs."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from building import FIT, IDENTITY, LOG, METHOD, PARSING, Build, in_partition, slowed
from cluster import Cluster, wait
from safetensors.numpy import load_file

from repository import Repository

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
# Tests of one group run in one process of pytest-xdist, one after the other.
of_matrix = pytest.mark.xdist_group("matrix")
of_failing_nodes = pytest.mark.xdist_group("nodes")


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
    wait("the first step", lambda: "training on 24 pictures" in log.read_text(), seconds=240)
    return job


def pre_empt(cluster: Cluster, job: dict[str, str]) -> None:
    node = ("-w", job["node"], "--exclusive", "--mem=0")
    cluster.run("sbatch", "-p", "urgent", *node, "-o", "/dev/null", "--wrap", "sleep 1")


def restarts(cluster: Cluster, job: str) -> int:
    """The number of times that a job was requeued."""
    return len(cluster.run("sacct", "-X", "-n", "-D", "-j", job, "-o", "State").split("\n")) - 2


@of_matrix
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


@of_matrix
def test_second_build_has_nothing_to_do(built):
    assert "Nothing to be done" in built.run("snakemake", "--profile", "slurm", "all")


@of_matrix
def test_only_trainings_and_networks_have_a_gpu(built_once, cluster):
    mine = cluster.jobs_of(built_once.path)
    submitted = [job for job in mine if job["JobName"].startswith("masquerade ")]
    assert {job["ReqTRES"].count("gres/gpu=1") for job in submitted} == {1}
    assert {job["ReqTRES"].count("gpu") for job in mine if job not in submitted} == {0}


@of_matrix
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


@of_matrix
def test_log_of_a_training_is_that_of_its_rule(built_once):
    log = (built_once.path / LOG).read_text()
    assert "training identity is slurm job" in log
    assert "identity on unseen identities" in log


def test_training_that_reaches_its_time_limit_is_requeued_and_gives_the_same_bytes(trained, cluster):
    whole = (trained.path / IDENTITY).read_bytes()
    slowed(trained, 12)  # four steps: 48 s, and the signal comes after 25 s
    trained.edit_params(
        lambda tree: tree["compute"].update(own={"training/identity": {"minutes": 1}}, grace_seconds=35)
    )
    build = Build(trained, IDENTITY)
    job = running(cluster, trained, "training identity")
    build.end()
    assert restarts(cluster, job["id"]) >= 1
    assert "resumed from" in (trained.path / LOG).read_text()
    assert (trained.path / IDENTITY).read_bytes() == whole


@of_failing_nodes
def test_pre_empted_training_is_requeued_and_gives_the_same_bytes(trained, cluster):
    whole = (trained.path / IDENTITY).read_bytes()
    slowed(in_partition(trained, "failing"), 12)  # four steps: longer than the grace of a pre-empted job, 30 s
    build = Build(trained, IDENTITY)
    job = training(cluster, trained)
    pre_empt(cluster, job)
    build.end()
    assert restarts(cluster, job["id"]) >= 1
    assert "resumed from" in (trained.path / LOG).read_text()
    assert (trained.path / IDENTITY).read_bytes() == whole


@of_failing_nodes
def test_training_that_ends_while_it_is_pre_empted_is_not_run_again(trained, cluster):
    log = trained.path / LOG
    build = Build(slowed(in_partition(trained, "failing"), 5), IDENTITY)  # ends within the grace
    job = training(cluster, trained)
    pre_empt(cluster, job)
    build.end()
    wait("the end of the requeued job", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=120)
    submitted = Path(log.read_text().split("its log: ")[1].splitlines()[0])
    assert submitted.read_text().count("training on 24 pictures") == 1


@of_failing_nodes
def test_training_continues_on_another_node_when_its_node_is_down(trained, cluster):
    whole = (trained.path / IDENTITY).read_bytes()
    build = Build(slowed(in_partition(trained, "failing"), 12), IDENTITY)
    job = training(cluster, trained)
    cluster.set_node(job["node"], "down")
    try:
        build.end()
    finally:
        cluster.set_node(job["node"], "resume")
    last = cluster.jobs_of(trained.path)[-1]
    assert (last["JobIDRaw"], last["NodeList"] != job["node"]) == (job["id"], True)
    assert (trained.path / IDENTITY).read_bytes() == whole


def test_training_of_two_processes_equals_that_of_one_except_for_rounding(trained, cluster):
    checkpoint = trained.path / FIT
    alone = load_file(checkpoint)
    checkpoint.unlink()
    trained.edit_params(lambda tree: tree["compute"].update(own={"training/fit": {"tasks": 2, "gpus": 2}}))
    trained.run("snakemake", "--profile", "slurm", "--", FIT)
    together = load_file(checkpoint)
    assert together.keys() == alone.keys()
    for name, weight in alone.items():
        np.testing.assert_allclose(together[name], weight, atol=2e-3, err_msg=name)
    (job,) = [job for job in cluster.jobs_of(trained.path) if job["JobName"] == "masquerade training fit"]
    assert "cpu=2" in job["ReqTRES"]


def test_cancelled_job_fails_only_what_depends_on_it(trained, cluster):
    for file in (IDENTITY, PARSING, METHOD):
        (trained.path / file).unlink()
    slowed(trained, 5)
    build = Build(trained, METHOD, PARSING)
    job = running(cluster, trained, "training identity")
    cluster.run("scancel", job["id"])
    output = build.end(fails=True)
    assert f"training identity ended as job {job['id']} without its outputs: CANCELLED. Somebody cancelled it" in output
    assert (trained.path / PARSING).is_file()
    assert not (trained.path / METHOD).exists()
    again = trained.run("snakemake", "--profile", "slurm", "--", METHOD, PARSING)
    assert (trained.path / METHOD).is_file()
    assert sorted(rules_of(again)) == ["backbone", "method"]


def rules_of(output: str) -> list[str]:
    """The rules of the finished jobs in the output of Snakemake."""
    return [line.split("Rule: ")[1].rstrip(")") for line in output.splitlines() if line.startswith("Finished jobid")]


@pytest.mark.parametrize("kind", ["training", "light"])
def test_unknown_partition_is_named_before_any_job_runs(sources, tmp_path, kind):
    repository = sources.copy(tmp_path / "repository")
    repository.edit_params(lambda tree: tree["compute"][kind].update(partition="nope"))
    output = repository.run("snakemake", "--profile", "slurm", "all", fails=True)
    assert f"compute.{kind}.partition is 'nope'. This cluster has: accidents, failing, main, urgent." in output
    assert "Finished jobid" not in output


def test_interrupting_snakemake_cancels_what_it_submitted(trained, cluster):
    (trained.path / IDENTITY).unlink()
    build = Build(slowed(trained, 60), IDENTITY)
    job = running(cluster, trained, "training identity")
    build.interrupt()
    build.end(fails=True, seconds=60)
    wait("the job's end", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=30)


def test_two_working_copies_build_side_by_side(sources, trained, cluster, tmp_path):
    copies = [in_partition(sources.copy(tmp_path / name), "accidents") for name in ("one", "two")]
    builds = [Build(copy, METHOD) for copy in copies]
    for build in builds:
        build.end()
    whole = (trained.path / METHOD).read_bytes()
    assert [(copy.path / METHOD).read_bytes() == whole for copy in copies] == [True, True]
    for copy in copies:
        assert {job["State"] for job in cluster.jobs_of(copy.path)} == {"COMPLETED"}


def test_error_of_a_failing_step_is_one_paragraph_with_its_log(sources, tmp_path):
    repository = in_partition(sources.copy(tmp_path / "repository"), "accidents")
    repository.edit_params(
        lambda tree: tree["backbones"]["recogniser_a"]["recognition"].update(floor_auc=1.0), "scales/tiny.yaml"
    )
    output = repository.run(
        "snakemake", "--profile", "slurm", "--", "checkpoints/tiny/backbones/recogniser_a.safetensors", fails=True
    )
    line = next(line for line in output.splitlines() if "training recogniser_a failed as job" in line)
    assert "backbone 'recogniser_a' is too poor to build on: auc is" in line
    assert Path(line.split("Its log is ")[1].rstrip(".")).is_file()
