"""An interrupted build continues with the same command, and its files equal those of an uninterrupted build."""

import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import programs

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

JOB = "^(local)?rule "  # what Snakemake writes when a job begins
TARGETS = (
    "results/tiny/figures/cao21/figure8.png",
    "data/tiny/measurements/synthetic_hq/identitydp/eps_6/0.parquet",
)  # networks, methods, recoveries, measurements, a figure


def files(repository) -> dict[str, bytes]:
    """Path -> bytes of every artifact. Hidden files are left out: a killed job was writing them."""
    visible = [path for room in ("data", "checkpoints", "results") for path in (repository.path / room).rglob("[!.]*")]
    return {str(path.relative_to(repository.path)): path.read_bytes() for path in visible if path.is_file()}


def kill_build(repository, log: Path, ready: Callable[[], bool], seconds: float) -> None:
    """Start the build of TARGETS, and kill it and its jobs these seconds after ``ready``."""
    log.write_text("")
    command = ("snakemake", "--cores", "2", "--config", "scale=tiny", "--", *TARGETS)
    process = programs.start(command, repository.path, repository.environment, log, log, session=True)
    while not ready() and process.is_alive():
        time.sleep(0.01)
    time.sleep(seconds)
    with suppress(ProcessLookupError):  # the build ended before
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def has_resumed(root):
    """Whether the log of a training says that it went on from a saved state."""
    return any("resumed from" in path.read_text() for path in (root / "logs/tiny").rglob("*.log"))


def test_build_killed_in_a_training_and_at_a_random_moment_ends_in_the_same_bytes(built, built_once, tmp_path):
    repository, log = built, tmp_path / "log"
    repository.git("checkout", "--quiet", "HEAD~1")  # figures name their commit
    for folder in ("checkpoints", "results", "data"):
        for path in (repository.path / folder / "tiny").iterdir():
            if path.name != "faces" and path.is_dir():  # drawing them takes longest
                shutil.rmtree(path)
    repository.environment["MASQUERADE_SAVE_EVERY_SECONDS"] = "0"
    states = repository.path / ".masquerade/state/tiny"
    for _ in range(3):  # the training that was seen may end before it is killed
        kill_build(repository, log, lambda: any(states.rglob("*.pt")), 0)
        repository.snakemake("--unlock")
        if any(states.rglob("*.pt")):
            break
    assert any(states.rglob("*.pt")), "the build ended before a training could be interrupted"
    count = len(files(repository))
    moment = random.uniform(0, 6)  # seconds of jobs
    kill_build(repository, log, lambda: bool(re.search(JOB, log.read_text(), re.MULTILINE)), moment)
    shutil.rmtree(repository.path / ".snakemake/locks", ignore_errors=True)  # as --unlock does, in no time
    resumed_before = has_resumed(repository.path)  # a job that starts once more writes its log anew
    repository.build(*TARGETS)
    whole, resumed = files(built_once), files(repository)
    assert count < len(resumed), "no job was left to kill"
    assert [name for name, content in resumed.items() if content != whole[name]] == [], f"killed after {moment} s"
    assert resumed_before or has_resumed(repository.path)
    assert "Nothing to be done" in repository.build(*TARGETS)
