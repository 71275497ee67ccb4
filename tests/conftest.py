"""Fixtures that all tests share: the repository, and its parameters at the scale of the tests."""

from pathlib import Path

import pytest

from masquerade.params import loading, parameters
from repository import Repository

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tiny() -> parameters.Parameters:
    return loading.load(ROOT, "tiny")


@pytest.fixture(scope="session")
def fresh(root, tmp_path_factory) -> Repository:
    """The sources of the working tree at tiny scale, with no built file."""
    return Repository.of_sources(root, tmp_path_factory.mktemp("fresh") / "repository", "tiny")
