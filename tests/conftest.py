"""What all tests share: the repository, and its parameters at the tests' scale."""

from pathlib import Path

import pytest

from masquerade import params

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tiny() -> params.Parameters:
    return params.load(ROOT, "tiny")
