"""The examples in the docstrings of the metrics give the documented output."""

import doctest
import importlib

import pytest

from masquerade.core import discovery

MODULES = [f"masquerade.metrics.{name}" for name in discovery.names("metrics")]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_metric(module):
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert not failed
    assert tried, f"{module} has no example"
