"""Time of `masquerade score` beside a finished build of `mini`. Writes score.md.

The program that is scored is a blur; its images are made before the clock starts. The build keeps it under the name
`my_blur`, until its block in scales/imported/mini.yaml is deleted. Keep the machine quiet.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import pandas as pd
from pages import MACHINE, ROOT, table, write

PROGRAM = [sys.executable, "-c", "from masquerade.cli.main import main; main()"]
SIGMA = 4.0  # of the blur, in pixels
JOBS = "logs/mini/benchmarks"


def run(built: Path, *arguments: str) -> float:
    """Run the program in the clone ``built``. Returns the seconds. Raises CalledProcessError if it fails."""
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(built / "src")}
    subprocess.run([*PROGRAM, *arguments, "--scale", "mini"], cwd=built, env=environment, check=True)
    return time.perf_counter() - began


def blur(source: Path, target: Path) -> int:
    """Write each face of ``source``, blurred, to the new folder ``target``. Returns their number."""
    target.mkdir()
    paths = list(source.glob("*.png"))
    for path in paths:
        cv2.imwrite(str(target / path.name), cv2.GaussianBlur(cv2.imread(str(path)), (0, 0), SIGMA))
    return len(paths)


def list_jobs(built: Path, since: float) -> list[float]:
    """The processor seconds of each job that ended after the time ``since``, from Snakemake's benchmarks."""
    files = [path for path in (built / JOBS).rglob("*.tsv") if path.stat().st_mtime >= since]
    return [float(pd.read_csv(path, sep="\t")["cpu_time"].iloc[0]) for path in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=Path, default=ROOT, help="a clone in which mini was built")
    built = parser.parse_args().built.resolve()
    with tempfile.TemporaryDirectory() as place:
        faces, made = Path(place, "faces"), Path(place, "made")
        run(built, "export-faces", "--to", str(faces))
        count, since = blur(faces, made), time.time()
        seconds = run(built, "score", "my_blur", str(made), "--replace")
    jobs = list_jobs(built, since)
    write(
        "score",
        "# Scoring the images of another program",
        f"`masquerade score my_blur made` beside a finished build of `mini`, {os.cpu_count()} processors, {MACHINE}. "
        "The command compares the images with the originals, and then runs the jobs.",
        table(
            ("faces", "seconds", "jobs", "processor seconds of the jobs"),
            [(count, f"{seconds:.0f}", len(jobs), f"{sum(jobs):.0f}")],
        ),
    )


if __name__ == "__main__":
    main()
