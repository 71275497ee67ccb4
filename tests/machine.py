"""Skips tests on a machine without a program that only root can install."""

import os
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """Skips the test with a reason. Fails it if ``CI=true`` is in the environment, because CI hides skipped tests."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
