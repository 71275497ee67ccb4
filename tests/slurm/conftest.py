"""A private SLURM for the session, and a matrix built through it. The processes of the tests share both."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from building import FIT, METHOD, PARSING, in_partition
from cluster import Cluster, missing_programs
from filelock import FileLock

from programs import lacks
from repository import Repository

JOBS = pytest.StashKey[str]()
LEFT_OUT = ("falco/m_0_9", "identitydp/eps_0_57", "identitydp/eps_800", "cao21/d_0", "cao21/random", "lreorg/gender",
            "lreorg/id_age")  # fmt: skip
"""Further variants of methods that have another cell. tests/workflow builds the whole tiny matrix without SLURM."""
PAPERS = ["identitydp", "lreorg", "attackers"]
"""Pages that have every kind of table and figure, and more of them than one group of jobs holds."""


@pytest.fixture(scope="session")
def cluster(request, shared_folder) -> Iterator[Cluster]:
    """The first process that needs the cluster starts it. The last that needed it stops it."""
    missing = missing_programs()
    if missing or os.geteuid() != 0:
        lacks(
            "these tests start a private SLURM: they need root and Debian's packages slurm-wlm, slurmdbd, munge and "
            f"mariadb-server (not found: {', '.join(missing) or 'nothing'}); `make slurm-test` installs them"
        )
    users, lock = shared_folder / "users", FileLock(shared_folder / "users.lock")
    with lock:
        if users.is_file():
            folder, *others = users.read_text().splitlines()
            started = Cluster(Path(folder))
        else:
            folder, others = tempfile.mkdtemp(prefix="masquerade-slurm-"), []
            started = Cluster(Path(folder))
            started.folder.chmod(0o755)  # pytest's own folders refuse munge's clients and MariaDB's user
            started.start()
        users.write_text("\n".join([folder, *others, str(os.getpid())]))
    with started.holds_lifted():
        yield started
    with lock:
        folder, *others = users.read_text().splitlines()
        others.remove(str(os.getpid()))
        users.write_text("\n".join([folder, *others]))
        if not others:
            report(request.config, started.run("sacct", "-X", "-o", "JobID%6,JobName%-40,State%-20,NodeList%4,Elapsed"))
            started.stop()
            users.unlink()
            shutil.rmtree(folder)


def report(config: pytest.Config, jobs: str) -> None:
    """Keep the list of jobs for the end of the session. A process of pytest-xdist hands it to the first process."""
    if hasattr(config, "workeroutput"):
        config.workeroutput["jobs"] = jobs
    else:
        config.stash[JOBS] = jobs


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash[JOBS] = node.config.stash.get(JOBS, "") + getattr(node, "workeroutput", {}).get("jobs", "")


def pytest_terminal_summary(terminalreporter, config):
    """Print every job that SLURM ran, with its id."""
    terminalreporter.section("jobs of SLURM")
    terminalreporter.write(config.stash.get(JOBS, "none\n"))


@pytest.fixture(scope="session")
def sources(fresh, cluster, tmp_path_factory) -> Repository:
    """A working copy without a build, at scale `tiny` without LEFT_OUT, for PAPERS.

    Trainings and networks request a GPU of the cluster, which is a harmless file.
    """
    repository = fresh.copy(tmp_path_factory.mktemp("sources") / "repository", cluster.environment)
    repository.edit_params(lambda tree: tree["compute"]["training"].update(gpus=1))
    repository.edit_params(lambda tree: tree["compute"]["inference"].update(gpus=1))
    repository.edit_params(lambda tree: tree.update(papers=PAPERS))
    repository.edit_params(leave_out, "scales/tiny.yaml")
    # The cluster has no other user, so its status may be checked early.
    repository.edit("slurm/config.yaml", "before-status-checks: 10", "before-status-checks: 1")
    repository.commit("GPUs")
    return repository


CELLS = {
    "attributes": ["falco/m_0"],
    "informed": ["cao21/d_9"],
    "recovery": ["cao21/d_9", "fit/*", "lreorg/*"],
    "attacks": ["cao21/d_9"],
}
"""Enough cells for every attacker and every kind of recovery."""


def leave_out(tree: dict) -> None:
    """Remove the variants LEFT_OUT, and all protocols' cells but CELLS, in the overlay of the scale."""
    for protocol, cells in CELLS.items():
        tree[protocol]["cells"]["synthetic_hq"] = cells
    for method, variant in (name.split("/") for name in LEFT_OUT):
        tree["methods"][method]["variants"][variant] = None


@pytest.fixture(scope="session")
def built_once(sources, tmp_path_factory) -> Repository:
    """The matrix of `sources`, built from nothing by the command that users type."""
    repository = sources.copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = repository.run("snakemake", "--profile", "slurm", "all")
    return repository


@pytest.fixture
def trained(sources, once, tmp_path) -> Repository:
    """A working copy with three trained networks and what they need, built without SLURM, for tests of accidents."""

    def build(folder: Path) -> None:
        sources.copy(folder / "repository").build(PARSING, METHOD, FIT)

    folder = once("trained", build)
    repository = Repository(folder / "repository", sources.environment).copy(tmp_path / "repository")
    return in_partition(repository, "accidents")
