"""The real Snakefile and dvc.yaml at `tiny` scale: built once, then copied by each test."""

import pytest

from repository import Repository


@pytest.fixture(scope="session")
def built_once(fresh, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing and recorded by DVC."""
    repository = fresh.copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = repository.snakemake("all")
    repository.commit("built")
    return repository


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, free to be changed. Its files keep their times, as a clone's do not."""
    return built_once.copy(tmp_path / "repository")
