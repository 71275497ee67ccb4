"""Trainings on a real SLURM whose nodes are taken away: by a job of higher priority, or because they fail."""

from pathlib import Path

import pytest
from building import IDENTITY, LOG, Build, hurried, in_partition, restarts, slowed, training
from cluster import Cluster, wait

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def pre_empt(cluster: Cluster, job: dict[str, str]) -> None:
    node = ("-w", job["node"], "--exclusive", "--mem=0")
    cluster.run("sbatch", "-p", "urgent", *node, "-o", "/dev/null", "--wrap", "sleep 1")


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


def test_training_that_ends_while_it_is_pre_empted_is_not_run_again(trained, cluster):
    log = trained.path / LOG
    build = Build(slowed(in_partition(trained, "failing"), 60), IDENTITY)
    job = training(cluster, trained)
    submitted = Path(log.read_text().split("its log: ")[1].splitlines()[0])
    pre_empt(cluster, job)
    wait("the signal of its pre-emption", lambda: "signal SIGCONT" in submitted.read_text(), seconds=120)
    hurried(trained)  # ends within the grace
    build.end()
    wait("the end of the requeued job", lambda: job["id"] not in {one["id"] for one in cluster.queue()}, seconds=120)
    assert submitted.read_text().count(".training: training on ") == 1


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
