"""The examples in the docstrings of the metrics and of the calls from Python give the documented output."""

import doctest
import importlib

import pytest

from masquerade.core import discovery

CALLS = ["masquerade", "masquerade.pipeline.photographs.anonymizer"]
METRICS = {discovery.load("metrics", name) for name in discovery.list_names("metrics")}
MODULES = [*CALLS, *sorted({metric.__module__ for metric in METRICS})]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_module(module, root, monkeypatch):
    monkeypatch.chdir(root)
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert not failed
    assert tried, f"{module} has no example"
