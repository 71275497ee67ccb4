"""Time and memory of a build, of DVC over it, and of its jobs. Writes benchmarks/pipeline_SCALE.md.

Everything happens in a clone, in which the renderer is compiled, as an installation does. ``--against COMMIT`` measures
that commit in the same way on the same machine, with the same installed packages. Keep the machine quiet.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from pages import MACHINE, ROOT, table, write

KNOB = ("eps_6: {epsilon: 6.0}", "eps_6: {epsilon: 7.0}")
"""The knob of one variant in params.yaml that is changed: IdentityDP's privacy budget."""


class Measured(NamedTuple):
    seconds: float
    processor: float
    """Processor seconds of the command and of all that it started and waited for."""
    memory: float
    """Peak of the summed resident memory of the process tree, GiB. Shared pages count once for each process."""
    output: str


def clone(commit: str, folder: Path) -> None:
    """A clone of this repository at ``commit``; '' is the working tree as it is."""
    git = ["git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org", "-C", str(folder)]
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run([*git, "checkout", "--quiet", commit or "HEAD"], check=True)
    if not commit:
        changes = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=ROOT, capture_output=True, check=True).stdout
        if changes:
            subprocess.run([*git, "apply"], input=changes, check=True)
            subprocess.run([*git, "commit", "--quiet", "--all", "--message", "working tree"], check=True)


def measured(command: list[str], folder: Path) -> Measured:
    """Run a command in a clone. Exits if it fails."""
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as printed:
        before, began = os.times(), time.perf_counter()
        process = psutil.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT)
        peak, done = 0.0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.5):
                total = 0
                for item in [process, *process.children(recursive=True)]:
                    try:
                        total += item.memory_info().rss
                    except psutil.NoSuchProcess:
                        continue
                peak = max(peak, total / 2**30)

        watcher = threading.Thread(target=watch)
        watcher.start()
        process.wait()
        seconds, after = time.perf_counter() - began, os.times()
        done.set()
        watcher.join()
        printed.seek(0)
        output = printed.read().decode(errors="replace")
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}\n{output[-4000:]}")
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return Measured(seconds, user + system, peak, output)


def jobs(folder: Path, scale: str) -> list[tuple[str, float]]:
    """(name, seconds) of every job, the longest first, from Snakemake's own benchmark files."""
    base = folder / "logs" / scale / "benchmarks"
    rows = [
        (path.relative_to(base).with_suffix("").as_posix(), float(path.read_text().splitlines()[1].split("\t")[0]))
        for path in base.rglob("*.tsv")
    ]
    return sorted(rows, key=lambda row: -row[1])


def written(folder: Path, scale: str) -> dict[str, int]:
    """Name of each job -> when it was measured, in nanoseconds."""
    base = folder / "logs" / scale / "benchmarks"
    return {path.relative_to(base).with_suffix("").as_posix(): path.stat().st_mtime_ns for path in base.rglob("*.tsv")}


def changed_knob(folder: Path, scale: str, cores: int) -> tuple[Measured, Measured]:
    """`dvc repro` after a change of one knob of one variant, and Snakemake's build of the same jobs after it."""
    file = folder / "params.yaml"
    text = file.read_text()
    if text.count(KNOB[0]) != 1:
        sys.exit(f"params.yaml must hold '{KNOB[0]}' once")
    file.write_text(text.replace(*KNOB))
    repro = measured(["dvc", "repro"], folder)
    file.write_text(text)
    again = measured(["snakemake", "--cores", str(cores), "all"], folder)
    return repro, again


def measure(commit: str, scale: str, cores: int, folder: Path) -> dict[str, str]:
    """What the table holds of one commit: row -> text."""
    clone(commit, folder)
    if (folder / "src/masquerade/cli/faces.py").is_file():  # the last step of an installation
        measured(["masquerade", "faces", "--size", "32", "--output", "faces.png"], folder)
        (folder / "faces.png").unlink()
    snakemake = ["snakemake", "--cores", str(cores), "all"]
    build = measured(snakemake, folder)
    nothing = min((measured(snakemake, folder) for _ in range(3)), key=lambda run: run.seconds)
    status = min((measured(["dvc", "status"], folder) for _ in range(3)), key=lambda run: run.seconds)
    repro = min((measured(["dvc", "repro"], folder) for _ in range(2)), key=lambda run: run.seconds)
    names, before = jobs(folder, scale), written(folder, scale)
    changed, again = changed_knob(folder, scale, cores)
    after = written(folder, scale)
    affected = [(name, seconds) for name, seconds in jobs(folder, scale) if after[name] != before.get(name)]
    groups: dict[str, list[float]] = {}
    for name, seconds in names:
        groups.setdefault(name.split("/")[0], []).append(seconds)
    rows = {
        f"`snakemake all` without a build before, {len(names)} jobs": _text(build),
        "peak memory of all its processes": f"{build.memory:.1f} GiB",
        "seconds of all jobs": f"{sum(seconds for _, seconds in names):.0f} s",
        "`snakemake all` with nothing to do (best of 3)": _text(nothing),
        "`dvc status` (best of 3)": _text(status),
        "`dvc repro` with nothing to do (best of 2)": _text(repro),
        f"`dvc repro` after one changed knob of a variant, {len(affected)} jobs": _text(changed),
        "`snakemake all` back to the old knob, the same jobs": _text(again),
        "seconds of these jobs alone": f"{sum(seconds for _, seconds in affected):.0f} s",
        "lines of dvc.yaml": str(len((folder / "dvc.yaml").read_text().splitlines())),
    }
    rows |= {
        f"jobs `{group}` ({len(seconds)})": f"{sum(seconds):.0f} s"
        for group, seconds in sorted(groups.items(), key=lambda item: -sum(item[1]))
    }
    return rows | {f"longest: `{name}`": f"{seconds:.0f} s" for name, seconds in names[:8]}


def _text(run: Measured) -> str:
    return f"{run.seconds:.1f} s (processor {run.processor:.1f} s)"


def _neutral(row: str) -> str:
    """The name of a row without the number of its jobs."""
    return row.rsplit(", ", 1)[0] if row.endswith("jobs") else row.rsplit(" (", 1)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="", metavar="COMMIT")
    parser.add_argument("--folder", type=Path, help="where the clones are kept; without it they are deleted")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    scale = "mini"
    columns = {}
    with tempfile.TemporaryDirectory() as temporary:
        for commit in ([given.against] if given.against else []) + [""]:
            folder = (given.folder or Path(temporary)) / (commit or "own")
            columns[commit or "this commit"] = measure(commit, scale, given.cores, folder)
    *others, (_, own) = columns.items()
    lines = []
    for row, text in own.items():
        before = [{_neutral(name): value for name, value in rows.items()}.get(_neutral(row), "") for _, rows in others]
        lines.append((row, *before, text))
    write(
        f"pipeline_{scale}",
        f"# The pipeline at scale `{scale}`",
        f"{given.cores} cores, {MACHINE}; after installation. One run of `python benchmarks/pipeline.py`.",
        table(("what", *columns), lines),
    )


if __name__ == "__main__":
    main()
