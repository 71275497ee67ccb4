"""Time of the command line: help, and `masquerade anonymize` from Enter to the first result and to the last.

`python benchmarks/command_line.py` uses the checkpoints of `make reproduce`. The photographs are views of the portrait
that comes with scikit-image. Prints a table and writes benchmarks/command_line.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pages import MACHINE, ROOT, table, write
from PIL import Image
from skimage.data import astronaut

PROGRAM = [sys.executable, "-c", "from masquerade.cli.main import main; main()"]
KEY = b"a long pass phrase of a benchmark"
HELP = [["--help"], ["anonymize", "--help"], ["assets", "--help"]]


class Times(NamedTuple):
    """Seconds. ``first``: from the start of the process to its first image, NaN if it writes none."""

    first: float
    whole: float
    processor: float


def photographs(folder: Path, count: int) -> None:
    """Write ``count`` JPEG files with the same face at another place and size, as a camera writes them."""
    draw = np.random.default_rng(0)
    for number in range(count):
        left, top = draw.integers(0, 80), draw.integers(0, 30)
        side = int(draw.integers(300, 400))
        view = Image.fromarray(astronaut()[top : top + side, left : left + side])
        view.resize((1024, 1024)).save(folder / f"{number:03d}.jpg", quality=92)


def run(arguments: list[str], output: Path, pictures: int) -> Times:
    """Run the program in the repository. Exits if it fails, or if it does not write ``pictures`` images."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as printed:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*PROGRAM, *arguments], cwd=ROOT, env=environment, stdout=printed, stderr=subprocess.STDOUT
        )
        first = float("nan")
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if first != first and any(output.glob("*.png")):
                first = time.perf_counter() - began
            if ended:
                break
            time.sleep(0.01)
        whole = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        if process.returncode or len(list(output.glob("*.png"))) != pictures:
            sys.exit(f"masquerade {' '.join(arguments)}\n{printed.read().decode()[-4000:]}")
    return Times(first, whole, usage.ru_utime + usage.ru_stime)


def best(arguments: list[str], pictures: int = 0, rounds: int = 3) -> Times:
    """The shortest time of each kind in ``rounds`` runs: other processes can only slow a run down."""
    times = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place:
            output = Path(place, "out")
            times.append(run([*arguments, *(["--output", str(output)] if pictures else [])], output, pictures))
    return Times(*(min(column) for column in zip(*times, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--methods", nargs="+", default=["gaussian_blur", "identitydp", "ifadit", "lreorg", "falco"])
    parser.add_argument("--photographs", type=int, nargs="+", default=[1, 24])
    given = parser.parse_args()
    rows = []
    for arguments in HELP:
        times = best(arguments)
        rows.append((f"`masquerade {' '.join(arguments)}`", "", "", f"{times.whole:.2f}", f"{times.processor:.2f}"))
    with tempfile.TemporaryDirectory() as place:
        key = Path(place, "key")
        key.write_bytes(KEY)
        for count in given.photographs:
            source = Path(place, str(count))
            source.mkdir()
            photographs(source, count)
            for method in given.methods:
                options = ["--method", method, "--scale", given.scale, "--input", str(source)]
                options += ["--key-file", str(key), "--keep-recognizable"]  # time is measured, not privacy
                times = best(["anonymize", *options], count)
                rows.append((f"`anonymize --method {method}`", count, *(f"{seconds:.2f}" for seconds in times)))
    write(
        "command_line",
        "# The command line",
        f"Scale `{given.scale}`, photographs of 1024 x 1024 pixels, 1 thread, {MACHINE}; seconds from the start of the "
        "program, the best of three runs.",
        table(("command", "photographs", "first result", "all results", "processor time"), rows),
    )


if __name__ == "__main__":
    main()
