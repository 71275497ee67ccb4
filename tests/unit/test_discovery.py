"""Classes are found by the names that they state, or by those of their files, and never registered."""

import sys

import pytest

from masquerade.core import discovery
from masquerade.core.errors import ProtocolError

METRIC = """
from masquerade.metrics import Metric

class {name}(Metric):
    {stated}
    def compute(self, evidence):
        return {{}}
"""


@pytest.fixture
def add_file(tmp_path, monkeypatch):
    """Adds a file to a room in which nothing else is."""

    def add(room, name, text):
        package = __import__(f"masquerade.{room}", fromlist=["BASE"])
        (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / room / f"{name}.py").write_text(text)
        discovery._files_by_name.cache_clear()
        monkeypatch.setattr(discovery, "PACKAGE", tmp_path)
        monkeypatch.setattr(package, "__path__", [str(tmp_path / room)])
        monkeypatch.delitem(sys.modules, f"masquerade.{room}.{name}", raising=False)

    yield add
    discovery.load.cache_clear()


def test_a_metric_is_added_by_one_file_and_a_family_of_metrics_too(add_file):
    add_file("metrics", "mine", METRIC.format(name="Mine", stated=""))
    family = METRIC.format(name="Near", stated='name = "near"') + METRIC.format(name="Far", stated='name = "far"')
    add_file("metrics", "family", family)
    assert discovery.list_names("metrics") == ["far", "mine", "near"]
    for name in discovery.list_names("metrics"):
        metric = discovery.load("metrics", name)
        assert (metric.__name__, discovery.find_name(metric)) == (name.capitalize(), name)


def test_two_classes_of_one_name_are_refused(add_file):
    add_file("metrics", "one", METRIC.format(name="One", stated='name = "near"'))
    add_file("metrics", "two", METRIC.format(name="Two", stated='name = "near"'))
    with pytest.raises(ProtocolError, match="both define 'near'"):
        discovery.list_names("metrics")


def test_a_file_without_its_class_is_refused(add_file):
    add_file("methods", "mine", "x = 1\n")
    with pytest.raises(ProtocolError, match=r"methods/mine.py must define exactly one subclass of Method .* defines 0"):
        discovery.load("methods", "mine")


def test_a_class_without_its_functions_is_refused(add_file):
    add_file("methods", "mine", "from masquerade.methods import Method\nclass Mine(Method):\n    pass\n")
    with pytest.raises(ProtocolError, match=r"Mine in methods/mine.py does not define: anonymize"):
        discovery.load("methods", "mine")


def test_error_for_an_unknown_name_gives_the_nearest():
    with pytest.raises(ProtocolError, match="Did you mean 'identitydp'"):
        discovery.load("methods", "identitydpp")
