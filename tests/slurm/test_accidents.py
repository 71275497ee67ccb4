"""Interrupted, requeued, cancelled and failing jobs on a real SLURM."""

from pathlib import Path

import numpy as np
import pytest
from building import FIT, IDENTITY, LOG, METHOD, PARSING, Build, restarts, rules_of, running, slowed
from cluster import wait
from safetensors.numpy import load_file

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

RECOGNIZER = "checkpoints/tiny/backbones/recognizer_a.safetensors"
WILD = "data/tiny/faces/synthetic_wild.zip"
"""What one of Snakemake's own jobs makes, which is no training."""


def test_training_that_reaches_its_time_limit_is_requeued_and_gives_the_same_bytes(trained, cluster):
    whole = (trained.path / IDENTITY).read_bytes()
    # Every 30 s SLURM signals the jobs that end in the next 35 s: here between 25 and 55 s after the start. Four steps
    # take 48 s after the imports.
    slowed(trained, 12)
    trained.edit_params(
        lambda tree: tree["compute"].update(overrides={"training/identity": {"minutes": 1}}, grace_seconds=5)
    )
    build = Build(trained, IDENTITY)
    job = running(cluster, trained, "training identity")
    build.end()
    assert restarts(cluster, job["id"]) >= 1
    assert "resumed from" in (trained.path / LOG).read_text()
    assert (trained.path / IDENTITY).read_bytes() == whole


def test_training_of_two_processes_equals_that_of_one_except_for_rounding(trained, cluster):
    checkpoint = trained.path / FIT
    alone = load_file(checkpoint)
    checkpoint.unlink()
    trained.edit_params(lambda tree: tree["compute"].update(overrides={"training/fit": {"tasks": 2, "gpus": 2}}))
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


def test_unknown_partition_is_named_before_any_job_runs(trained):
    trained.edit_params(lambda tree: tree["compute"]["light"].update(partition="nope"))
    output = trained.run("snakemake", "--profile", "slurm", "--", RECOGNIZER, fails=True)
    assert "compute.light.partition is 'nope'. This cluster has: accidents, failing, main, urgent." in output
    assert "Finished jobid" not in output


def test_jobs_run_in_an_outer_job_on_a_site_that_exports_nothing_in_a_path_with_a_space_with_the_free_options(
    trained, cluster, tmp_path
):
    repository = trained.copy(tmp_path / "it's a & (b) #c")
    (free,) = [node for node in cluster.nodes("idle,mixed") if node == "n4"]
    for kind in ("light", "training"):
        options = {"exclude": "n3", "mem-per-cpu": "1G", "nice": 5}
        repository.edit_params(lambda tree, kind=kind, options=options: tree["compute"][kind].update(options=options))
    outer = {"SLURM_JOB_ID": "999999", "SLURM_MEM_PER_NODE": "7", "SLURM_NTASKS": "64", "SLURM_CPUS_PER_TASK": "64"}
    site = {"SBATCH_EXPORT": "NONE", "SLURM_EXPORT_ENV": "NONE", "SRUN_EXPORT_ENV": "NONE", "SBATCH_MEM_PER_NODE": "7"}
    repository.environment |= outer | site
    repository.run("snakemake", "--profile", "slurm", "--", RECOGNIZER, WILD)
    jobs = cluster.jobs_of(repository.path)
    assert {job["NodeList"] for job in jobs} == {free}
    assert {job["State"] for job in jobs} == {"COMPLETED"}
    assert sum(job["JobName"] == "masquerade training recognizer_a" for job in jobs) == 1
    assert len(jobs) >= 2
    assert all("cpu=64" not in job["ReqTRES"] and "G" in job["ReqTRES"] for job in jobs)


def test_interrupting_snakemake_cancels_what_it_submitted(trained, cluster):
    (trained.path / IDENTITY).unlink()
    build = Build(slowed(trained, 60), IDENTITY)
    job = running(cluster, trained, "training identity")
    build.interrupt()
    build.end(fails=True, seconds=60)
    wait("the job's end", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=30)


def test_two_working_copies_build_side_by_side(trained, cluster, tmp_path):
    whole = [(trained.path / file).read_bytes() for file in (IDENTITY, METHOD)]
    copies = [trained.copy(tmp_path / name) for name in ("one", "two")]
    for copy in copies:
        for file in (IDENTITY, METHOD):
            (copy.path / file).unlink()
    builds = [Build(copy, METHOD, WILD) for copy in copies]
    for build in builds:
        build.end()
    for copy in copies:
        assert [(copy.path / file).read_bytes() for file in (IDENTITY, METHOD)] == whole
    for copy in copies:
        assert {job["State"] for job in cluster.jobs_of(copy.path)} == {"COMPLETED"}


def test_error_of_a_failing_step_is_one_paragraph_with_its_log(trained):
    trained.edit_params(
        lambda tree: tree["backbones"]["recognizer_a"]["recognition"].update(floor_auc=1.0), "scales/tiny.yaml"
    )
    output = trained.run("snakemake", "--profile", "slurm", "--", RECOGNIZER, fails=True)
    line = next(line for line in output.splitlines() if "training recognizer_a failed as job" in line)
    assert "backbone 'recognizer_a' is too poor to build on: auc is" in line
    assert Path(line.split("Its log is ")[1].rstrip(".")).is_file()
