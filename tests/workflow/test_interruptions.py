"""An interrupted build continues with the same command, and its files equal those of an uninterrupted build."""

import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress

import pytest

import programs

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

KILLS = 3
JOB = "^(local)?rule "  # what Snakemake writes when a job begins
TARGETS = (
    "results/tiny/figures/cao21/figure8.png",
    "data/tiny/measurements/synthetic_hq/identitydp/eps_6/0.parquet",
)  # faces, networks, methods, recoveries, measurements, a figure


def files(repository) -> dict[str, bytes]:
    """Path -> bytes of every artifact. Hidden files are left out: a killed job was writing them."""
    kept = [path for room in ("data", "checkpoints", "results") for path in (repository.path / room).rglob("[!.]*")]
    return {str(path.relative_to(repository.path)): path.read_bytes() for path in kept if path.is_file()}


def test_build_killed_at_random_moments_ends_in_the_same_bytes(fresh, built_once, tmp_path):
    repository = fresh.copy(tmp_path / "repository")
    repository.environment["MASQUERADE_SAVE_EVERY_SECONDS"] = "0"
    seed = random.randrange(10**6)
    moments = [random.Random(seed + number).uniform(0, 6) for number in range(KILLS)]  # seconds of jobs
    counts = []
    for moment in moments:
        log = tmp_path / "log"
        log.write_text("")
        command = ("snakemake", "--cores", "2", "--", *TARGETS)
        process = programs.start(command, repository.path, repository.environment, log, log, session=True)
        while not re.search(JOB, log.read_text(), re.MULTILINE) and process.is_alive():
            time.sleep(0.02)
        time.sleep(moment)
        with suppress(ProcessLookupError):  # the build ended before
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
        counts.append(len(files(repository)))
        if len(counts) == 1:
            repository.snakemake("--unlock")
        shutil.rmtree(repository.path / ".snakemake/locks", ignore_errors=True)  # as --unlock does, in no time
    repository.snakemake("--", *TARGETS)
    whole, resumed = files(built_once), files(repository)
    assert counts[0] < len(resumed), f"no job was left to kill (seed {seed})"
    assert [name for name, content in resumed.items() if content != whole[name]] == [], f"seed {seed}, files {counts}"
    assert "Nothing to be done" in repository.snakemake("--", *TARGETS)
