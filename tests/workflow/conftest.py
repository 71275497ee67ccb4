"""The real Snakefile and dvc.yaml at `tiny` scale: built once, then copied by each test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from masquerade.pipeline import fork_server, forked_job
from repository import Repository


@pytest.fixture(scope="session")
def job_server(once) -> Iterator[str]:
    """The socket of a fork server for the jobs of all builds. The test process that started it ends it."""
    started = []

    def start(folder: Path) -> None:
        lifeline, held = os.pipe()
        started.append((fork_server.start_server(folder / fork_server.SOCKET, lifeline), held))
        os.close(lifeline)

    yield str(once("server", start) / fork_server.SOCKET)
    for server, held in started:
        os.close(held)
        server.wait()


@pytest.fixture(scope="session")
def fresh(fresh, job_server) -> Repository:
    return Repository(fresh.path, fresh.environment | {forked_job.ADDRESS: job_server})


@pytest.fixture(scope="session")
def built_once(fresh, once, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing and recorded by DVC. Built once; every test process gets a copy."""

    def build(folder: Path) -> None:
        repository = fresh.copy(folder / "repository")
        del repository.environment[forked_job.ADDRESS]  # as a user builds
        (folder / "output").write_text(repository.snakemake("all"))
        repository.commit("built")

    whole = once("whole", build)
    repository = Repository(whole / "repository", fresh.environment).copy(
        tmp_path_factory.mktemp("built") / "repository"
    )
    repository.build_output = (whole / "output").read_text()
    return repository


@pytest.fixture(scope="session")
def narrow_once(built_once, once) -> Repository:
    """The build with the tables and two figures of one paper: changes make few jobs again. Built once, only copied."""

    def build(folder: Path) -> None:
        repository = built_once.copy(folder / "repository")
        repository.edit_params(lambda tree: tree.update(papers=["identitydp"]))
        for number in (1, 5, 6, 8, 9):  # its other figures are of the same kinds
            (repository.path / f"reference/identitydp/figure{number}.yaml").unlink()
        repository.snakemake("all")
        repository.run("masquerade", "records", "clean", "--delete")
        repository.run("masquerade", "records", "save")
        repository.commit("one paper")

    return Repository(once("narrow", build) / "repository", built_once.environment)


@pytest.fixture
def narrow(narrow_once, tmp_path) -> Repository:
    """A copy of the build of one paper, which a test may change."""
    return narrow_once.copy(tmp_path / "repository")


@pytest.fixture(scope="module")
def plans_only(narrow_once, tmp_path_factory):
    """A copy of the build of one paper in which no job runs."""
    return narrow_once.copy(tmp_path_factory.mktemp("plans") / "repository")


@pytest.fixture
def planned(plans_only):
    """A built working copy whose sources and parameters a test may edit, to see the plan. The edits are undone."""
    yield plans_only
    plans_only.git("checkout", "--quiet", "--", ".")


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, which a test may change. Unlike in a clone, files keep their times."""
    return built_once.copy(tmp_path / "repository")
