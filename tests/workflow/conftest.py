"""The real Snakefile and dvc.yaml at `tiny` scale: built once, then copied by each test."""

from pathlib import Path

import pytest

from repository import Repository


@pytest.fixture(scope="session")
def built_once(fresh, once, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing and recorded by DVC. Built once; every test process gets a copy."""

    def build(folder: Path) -> None:
        repository = fresh.copy(folder / "repository")
        (folder / "output").write_text(repository.snakemake("all"))
        repository.commit("built")

    whole = once("whole", build)
    repository = Repository(whole / "repository").copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = (whole / "output").read_text()
    return repository


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, which a test may change. Unlike in a clone, files keep their times."""
    return built_once.copy(tmp_path / "repository")
