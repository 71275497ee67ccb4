"""Fixtures that all tests share: the repository, and its parameters at the scale of the tests."""

import gc
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from numpy.random import default_rng

from masquerade.core import fingerprints
from masquerade.params import loading, parameters
from repository import Repository

ROOT = Path(__file__).parent.parent
# A hook of git that runs the tests sets GIT_VARIABLES, and tests make repositories of their own. With the last variable
# a fork server would be of another Python than the jobs of a repository, and each job would import its libraries.
for name in (*fingerprints.GIT_VARIABLES, "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)
gc.set_threshold(100_000, 50, 100)  # searching what is imported for garbage takes a tenth of the time of the tests


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tiny() -> parameters.Parameters:
    return loading.load(ROOT, "tiny")


@pytest.fixture(autouse=True)
def operating_system_numbers(monkeypatch):
    """The random numbers of the operating system, the same in each run of one test.

    In one image of noise in a hundred HOG sees a face, and such an image is refused.
    """
    generator = default_rng(1)
    monkeypatch.setattr(secrets, "token_bytes", generator.bytes)
    monkeypatch.setattr(secrets, "token_hex", lambda length: generator.bytes(length).hex())
    monkeypatch.setattr(secrets, "randbits", lambda bits: int(generator.integers(2**bits)))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id) -> Path:
    """A folder that every process of this session uses."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def once(shared_folder) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function of a name and another function. One process fills the folder of that name, the others wait for it."""

    def fill_once(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared_folder / name, shared_folder / f"{name}.done"
        with FileLock(f"{folder}.lock"):
            if not done.is_file():
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return fill_once


@pytest.fixture(scope="session")
def fresh(root, once) -> Repository:
    """The sources of the working tree at tiny scale, with no built file. All processes share it: no job runs in it."""
    shared = once("fresh", lambda folder: Repository.of_sources(root, folder / "repository", "tiny"))
    return Repository(shared / "repository")
