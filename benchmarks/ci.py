"""Time of `.ci/run`, which is installation and every test, and of each run of pytest in it. Writes benchmarks/ci.md.

Everything happens in a fresh clone. ``--against COMMIT`` measures that commit afterwards on the same machine. Keep the
machine quiet, and start this with a Python that is in no clone: `.ci/run` makes its own environment.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from pages import MACHINE, table, write
from pipeline import clone

COMMAND = re.compile(r"python -m pytest\b *(.*)")
"""The line in which make announces a run of pytest, with its arguments."""
RESULT = re.compile(r"(?:=+ )?(\d+ (?:passed|failed|skipped|errors?)\b.*) in ([0-9.]+)s\b")
"""pytest's closing line."""
OPTIONS = re.compile(r"(^| )(-v|-n \w+|--dist \w+|--no-loadscope-reorder)(?= |$)")
"""Options that do not choose tests."""


def measure(commit: str, folder: Path) -> dict[str, str]:
    """What the table holds of one commit: row -> text."""
    clone(commit, folder)
    removed = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS")
    environment = {key: value for key, value in os.environ.items() if key not in removed}
    log, began = folder.parent / f"{folder.name}.log", time.perf_counter()
    with log.open("w", encoding="utf-8") as printed:
        ended = subprocess.run(
            ["bash", ".ci/run"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    total = _minutes(time.perf_counter() - began) + (f", ended with {ended}" if ended else "")
    return {"`.ci/run`, with installation": total} | runs(log.read_text(encoding="utf-8", errors="replace"))


def runs(log: str) -> dict[str, str]:
    """The runs of pytest in what `.ci/run` printed: row -> text."""
    name, rows = "", {}
    for line in log.splitlines():
        if found := COMMAND.search(line):
            name = OPTIONS.sub("", found[1]).strip() or "make test"
        elif found := RESULT.match(line):
            rows[f"pytest: {name}"] = f"{_minutes(float(found[2]))}, {found[1]}"
    return rows


def _minutes(seconds: float) -> str:
    return "{:.0f}:{:02.0f}".format(*divmod(round(seconds), 60))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="", metavar="COMMIT")
    parser.add_argument("--folder", type=Path, help="where the clones are kept; without it they are deleted")
    given = parser.parse_args()
    columns = {}
    with tempfile.TemporaryDirectory() as temporary:
        for commit in ["", *filter(None, [given.against])]:
            folder = (given.folder or Path(temporary)) / (commit or "own")
            columns[commit or "this commit"] = measure(commit, folder)
            _write(columns)


def _write(columns: dict[str, dict[str, str]]) -> None:
    names = dict.fromkeys(name for rows in columns.values() for name in rows)
    write(
        "ci",
        "# The tests",
        f"{os.cpu_count()} cores, {MACHINE}; minutes:seconds of one run of `python benchmarks/ci.py`, in fresh clones.",
        table(("what", *columns), [(name, *(rows.get(name, "") for rows in columns.values())) for name in names]),
    )


if __name__ == "__main__":
    main()
