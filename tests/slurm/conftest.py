"""A private SLURM for the session, and the tiny matrix built through it."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from cluster import Cluster, missing_programs

from machine import lacks
from repository import Repository

JOBS = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def cluster(request):
    missing = missing_programs()
    if missing or os.geteuid() != 0:
        lacks(
            "these tests start a private SLURM: they need root and Debian's packages slurm-wlm, slurmdbd, munge and "
            f"mariadb-server (not found: {', '.join(missing) or 'nothing'}); `make slurm-test` installs them"
        )
    folder = Path(tempfile.mkdtemp(prefix="masquerade-slurm-"))
    folder.chmod(0o755)  # munge's clients and MariaDB's user need access, which pytest's own folders refuse
    started = Cluster(folder)
    started.start()
    yield started
    request.config.stash[JOBS] = started.run("sacct", "-X", "-o", "JobID%6,JobName%-40,State%-20,NodeList%4,Elapsed")
    started.stop()
    shutil.rmtree(folder)


def pytest_terminal_summary(terminalreporter, config):
    """Print every job that SLURM ran, with its id."""
    terminalreporter.section("jobs of SLURM")
    terminalreporter.write(config.stash.get(JOBS, "none\n"))


@pytest.fixture(scope="session")
def sources(fresh, cluster, tmp_path_factory) -> Repository:
    """A working copy without a build. Trainings and networks request a GPU of the cluster, which is a harmless file."""
    repository = fresh.copy(tmp_path_factory.mktemp("sources") / "repository", cluster.environment)
    repository.edit_params(lambda tree: tree["compute"]["training"].update(gpus=1))
    repository.edit_params(lambda tree: tree["compute"]["inference"].update(gpus=1))
    # The cluster has no other user, so its status may be checked early.
    repository.edit("slurm/config.yaml", "before-status-checks: 10", "before-status-checks: 3")
    repository.commit("GPUs")
    return repository


@pytest.fixture(scope="session")
def built_once(sources, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing by the command that users type."""
    repository = sources.copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = repository.run("snakemake", "--profile", "slurm", "all")
    return repository


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, which a test may change."""
    return built_once.copy(tmp_path / "repository")
