"""Time and memory of the whole pipeline, from nothing and with nothing to do. Writes benchmarks/pipeline_SCALE.md."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent


def clone(into: Path) -> None:
    """Copy the working tree (tracked and new files) without any built file."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    subprocess.run(["git", "init", "--quiet"], cwd=into, check=True)


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """(seconds, peak of the summed resident memory of the process tree in GiB). Exits if the command fails."""
    began = time.perf_counter()
    process = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.25):
            total = 0
            for item in [process, *process.children(recursive=True)]:
                try:
                    total += item.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            peak = max(peak, total / 2**30)

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, errors = process.communicate()
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    if process.returncode:
        sys.exit(errors.decode()[-4000:])
    return seconds, peak


def slowest(folder: Path, scale: str, count: int = 8) -> list[tuple[str, float, float]]:
    """The jobs that took longest: (name, seconds, GiB), from Snakemake's own benchmark files."""
    rows = []
    base = folder / "logs" / scale / "benchmarks"
    for path in base.rglob("*.tsv"):
        header, values = (line.split("\t") for line in path.read_text().splitlines()[:2])
        job = dict(zip(header, values, strict=True))
        memory = float(job["max_rss"]) / 1024 if job["max_rss"] not in ("-", "NA") else 0.0
        rows.append((path.relative_to(base).with_suffix("").as_posix(), float(job["s"]), memory))
    return sorted(rows, key=lambda row: -row[1])[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    given = parser.parse_args()
    snakemake = [str(Path(sys.executable).with_name("snakemake")), "--cores", str(given.cores), "--config"]
    command = [*snakemake, f"scale={given.scale}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clone(folder)
        build, memory = measured(command, folder)
        again = min(measured(command, folder)[0] for _ in range(3))
        jobs = slowest(folder, given.scale)
        count = len(list((folder / "logs" / given.scale / "benchmarks").rglob("*.tsv")))
    lines = [
        f"# The pipeline at scale `{given.scale}`",
        "",
        f"{given.cores} cores, {platform.machine()}, Python {platform.python_version()}; after installation.",
        "",
        "| what | measured |",
        "|---|---|",
        f"| `snakemake all` from nothing, {count} jobs | {build:.0f} s |",
        f"| peak resident memory of all its processes | {memory:.1f} GiB |",
        f"| `snakemake all` with nothing to do (best of 3) | {again:.1f} s |",
        "",
        "| longest jobs | seconds | GiB |",
        "|---|---|---|",
        *(f"| {name} | {seconds:.0f} | {gib:.1f} |" for name, seconds, gib in jobs),
        "",
    ]
    (ROOT / "benchmarks" / f"pipeline_{given.scale}.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
