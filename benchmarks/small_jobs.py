"""Seconds of overhead of a small job: in its own process, forked, and in a used process. Writes small_jobs.md.

Run it in a clone with a build of `tiny`. The jobs are those of the build, one after the other, and write the same bytes
again. On a GPU the first kernels of a process come on top. A process that used one takes the next job, and here a GPU
is pretended for that. Keep the machine quiet.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pages import MACHINE, ROOT, table, write

from masquerade.lineage import snakemake_internals, tracking
from masquerade.pipeline import fork_server, forked_job

JOBS = {"anonymize": "anonymize_neural", "measure": "measure", "metrics": "metrics"}
"""Row of the table -> the rule of its jobs."""
MOST = 8
"""Jobs of a row: as many as share a submission."""
USES_GPU = """
from masquerade.pipeline import forked_job
forked_job.delegate()
import runpy, torch
torch.cuda.is_initialized = lambda: True
torch.cuda.empty_cache = torch.cuda.reset_peak_memory_stats = lambda: None
runpy.run_path({script!r}, run_name="__main__")
"""


def commands(rule: str) -> list[str]:
    """The commands of this rule in the build, at most `MOST`."""
    files = [path for path in (ROOT / snakemake_internals.RECORDS).rglob("*") if path.is_file()]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    return sorted({record["shellcmd"] for record in records if record["rule"] == rule})[:MOST]


@contextmanager
def served() -> Iterator[None]:
    """Within the block there is a fork server."""
    server = fork_server.ForkServer(sys.stderr.write)
    server.start(fork_server.WORTHWHILE)
    try:
        yield
    finally:
        server.stop()


def seconds(lines: list[str]) -> tuple[float, float]:
    """Seconds of the jobs one after the other, and the seconds of their runs without starting and importing."""
    before, began = {*(ROOT / tracking.RECORDS).glob("*.jsonl")}, time.perf_counter()
    for line in lines:
        subprocess.run(line, shell=True, cwd=ROOT, check=True)
    total, inside = time.perf_counter() - began, 0.0
    for path in {*(ROOT / tracking.RECORDS).glob("*.jsonl")} - before:
        times = [json.loads(line)["time"] for line in path.read_text(encoding="utf-8").splitlines()]
        inside += max(times) - min(times)
    return total, inside


def measured(lines: list[str], folder: Path) -> list[float]:
    """Seconds a job: the job itself, and its overhead without a server, forked, and in a used process."""
    alone = seconds(lines)[0]
    with served():
        forked = seconds(lines)[0]
    used = []
    for line in lines:
        script = line.split()[1]
        (folder / Path(script).name).write_text(USES_GPU.format(script=script), encoding="utf-8")
        used.append(line.replace(script, str(folder / Path(script).name), 1))
    with served():
        seconds(used[:1])  # makes the process
        shared, inside = seconds(used)
    return [value / len(lines) for value in (inside, alone - inside, forked - inside, shared - inside)]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    os.environ.pop(forked_job.ADDRESS, None)
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, rule in JOBS.items():
            lines = commands(rule)
            rows.append([name, len(lines), *(f"{value:.2f}" for value in measured(lines, Path(folder)))])
    head = ("jobs", "number", "the job itself", "own process", "forked", "used process")
    write(
        "small_jobs",
        "# Small jobs",
        f"Seconds a job of scale `tiny`, one after the other; {os.cpu_count()} cores with a load of "
        f"{os.getloadavg()[1]:.0f}, {MACHINE}. The first column of "
        "seconds is the job itself. The others are its overhead: imports, models, starting. *Own process*: as every "
        "job on SLURM before. *Forked*: by a server of the build or of a submission, whose start is included. *Used "
        "process*: after a job in the same process, as jobs on a GPU run (a GPU is pretended here).",
        table(head, rows),
    )


if __name__ == "__main__":
    main()
