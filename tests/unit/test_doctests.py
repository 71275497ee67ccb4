"""The examples in the docstrings of the metrics and of the calls from Python give the documented output."""

import doctest
import importlib

import pytest

from masquerade.core import discovery

CALLS = ["masquerade", "masquerade.pipeline.photographs.anonymizer"]
MODULES = [*CALLS, *(f"masquerade.metrics.{name}" for name in discovery.names("metrics"))]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_module(module, root, monkeypatch):
    monkeypatch.chdir(root)
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert not failed
    assert tried, f"{module} has no example"
