"""Repositories of trained and of adopted networks (own_weights.py), one with records (toy_lineage.py), and signals."""

import shutil
import signal
from pathlib import Path

import pytest

from toy_lineage import Toy


@pytest.fixture(scope="session")
def trained(once) -> Path:
    """A repository in which some networks of the scale tiny were trained and exported."""
    import own_weights

    return once("trained_networks", own_weights.train_and_export)


@pytest.fixture
def copied(trained, tmp_path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))


@pytest.fixture
def repository(trained, tmp_path, monkeypatch) -> Path:
    """A repository that has the weights, adopts them, and has built nothing but faces."""
    import own_weights

    return own_weights.adopting_repository(trained, tmp_path / "repository", monkeypatch)


@pytest.fixture(scope="session")
def built_toy(tmp_path_factory) -> Toy:
    toy = Toy(tmp_path_factory.mktemp("toy") / "repository")
    toy.commit()
    return toy


@pytest.fixture
def toy(built_toy, tmp_path) -> Toy:
    """A copy that a test may change."""
    return built_toy.copy(tmp_path / "toy")


@pytest.fixture(scope="module")
def signals_are_received():
    """The tests may run in the background or under ``nohup``; their programs shall not ignore the signals as well."""
    numbers = [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM]
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
