"""What tests do on a machine that lacks something which only root can install."""

import os
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """Skip the test and say why; with ``CI=true`` in the environment fail, since nobody would read why."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
