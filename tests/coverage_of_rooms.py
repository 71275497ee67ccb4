"""Prints the share of the statements of each room that the last tests ran. `make fast` calls it at its end."""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import coverage

import masquerade

PACKAGE = Path(masquerade.__file__).parent


def shares() -> dict[str, tuple[int, int]]:
    """Room -> (statements that ran, all its statements), read from the data file of pyproject.toml."""
    measured = coverage.Coverage()
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        measured.json_report(outfile=str(report))
        files = json.loads(report.read_text())["files"]
    ran, every = Counter(), Counter()
    for name, facts in files.items():
        room = Path(name).resolve().relative_to(PACKAGE).parts[0].removesuffix(".py")
        ran[room] += facts["summary"]["covered_lines"]
        every[room] += facts["summary"]["num_statements"]
    return {room: (ran[room], every[room]) for room in sorted(every) if every[room]}


def main() -> None:
    rooms = shares()
    total = tuple(map(sum, zip(*rooms.values(), strict=True)))
    for room, (ran, every) in {**rooms, "all": total}.items():
        sys.stdout.write(f"{room:<10} {ran:>6} of {every:>6} statements  {100 * ran / every:>3.0f} %\n")


if __name__ == "__main__":
    main()
