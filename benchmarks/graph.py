"""Time and memory of planning (`snakemake -n`) with a hundred methods, ten datasets and five seeds.

In a copy of the working tree, methods that depend on a seed are copied under new names (module, block of params.yaml)
until there are a hundred more, and the two procedural datasets until there are ten more. Each new dataset has a table
of the hundred methods. The tables of the papers stay. No job runs. Prints a table and writes benchmarks/graph.md.
"""

import argparse
import os
import platform
import pstats
import re
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import yaml
from pipeline import ROOT, clone

from masquerade.core import discovery
from masquerade.params import loading, matrix, overlays, yaml_files

METHODS, DATASETS, BASE = 100, 10, "mini"
SIZES = {"1k": (1, 1), "5k": (5, 1), "10k": (5, 2), "50k": (5, 10)}
"""Name -> (seeds, variants of each method)."""
PLAN = ["--dry-run", "--cores", "1", "--quiet", "rules", "host"]
PARTS = {
    "reading the rules (`include`): parameters, cells, modules": ("workflow.py", "include"),
    "finding jobs and what they need (`DAG.update`)": ("dag.py", "update"),
    "of that: functions of our rules (`apply_func`)": ("rules.py", "apply_func"),
    "of that: their signatures (`get_function_params`)": ("__init__.py", "get_function_params"),
    "what is out of date (`update_needrun`)": ("dag.py", "update_needrun"),
    "environments (`update_conda_envs`)": ("dag.py", "update_conda_envs"),
    "outputs inside outputs (`check_directory_outputs`)": ("dag.py", "check_directory_outputs"),
    "groups (`update_groups`)": ("dag.py", "update_groups"),
    "of that: paths that leave a group and come back (`_check_groups`)": ("dag.py", "_check_groups"),
    "printing every job, even unseen (`log_info`)": ("jobs.py", "log_info"),
    "of that: shell commands (`shellcmd`)": ("jobs.py", "shellcmd"),
    "ticking jobs off (`finish`)": ("dag.py", "finish"),
}
"""Part of the planning -> (file, function) of Snakemake that spends its time."""


def copies(folder: Path, room: str, originals: list[str], count: int) -> dict[str, str]:
    """Write the copies. Returns the name of each copy -> the name of its original."""
    made = {f"{name}_{number:03d}": name for number, name in enumerate(islice(cycle(originals), count))}
    for name, original in made.items():
        shutil.copy(discovery.module_path(room, original), folder / f"src/masquerade/{room}/{name}.py")
    return made


def overlay(methods: dict[str, str], datasets: dict[str, str], seeds: int, variants: int) -> dict:
    """The scale: ``BASE`` with its whole matrix, and the copies beside it."""
    base, over = loading.load(ROOT, BASE).tree, yaml_files.read(ROOT / f"scales/{BASE}.yaml")

    def block(original: str) -> dict:
        knobs = islice(cycle(base["methods"][original]["variants"].values()), variants)
        return {
            "params": base["methods"][original]["params"],
            "variants": {f"v_{number}": values for number, values in enumerate(knobs)},
        }

    more = {
        "seeds": list(range(seeds)),
        "papers": [*base["papers"], "everybody"],
        "methods": {name: block(original) for name, original in methods.items()},
        "datasets": {name: base["datasets"][original] for name, original in datasets.items()},
        "matrix": {"evaluate": {name: ["*/v_*"] for name in datasets}},
        "recovery": {"cells": {next(iter(datasets)): [f"{name}/*" for name in methods if invertible(methods[name])]}},
    }
    return overlays.overlay(over, more)


def invertible(method: str) -> bool:
    return discovery.load("methods", method).capabilities.invertible


def table(dataset: str, methods: dict[str, str]) -> dict:
    """A file of reference/: the first variant of every copy on one dataset."""
    return {
        "kind": "table",
        "title": dataset,
        "caption": "Everybody",
        "source": "none",
        "dataset": {"name": dataset, "role": dataset},
        "columns": [{"title": "PSNR", "metric": "psnr", "direction": "higher", "digits": 3, "printed": False}],
        "rows": [{"title": name, "method": name, "variant": "v_0", "note": "in no paper"} for name in methods],
    }


def write(path: Path, tree: dict) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")


def prepare(folder: Path) -> str:
    """Fill the copy of the working tree. Returns the path of one cell that every size has."""
    clone(folder)
    named = [name for name in loading.load(ROOT, BASE).methods if not matrix.runs_once(name)]
    named = [name for name in named if not discovery.load("methods", name).capabilities.control]
    methods = copies(folder, "methods", named, METHODS)
    datasets = copies(folder, "faces", ["synthetic_hq", "synthetic_wild"], DATASETS)
    for name, (seeds, variants) in SIZES.items():
        write(folder / f"scales/graph_{name}.yaml", overlay(methods, datasets, seeds, variants))
    for dataset in datasets:
        write(folder / f"reference/everybody/{dataset}.yaml", table(dataset, methods))
    return f"{next(reversed(datasets))}/{next(reversed(methods))}/v_0/0"


class Measured(NamedTuple):
    seconds: float
    processor: float
    """Seconds of processor time. Other processes change it less."""
    gib: float
    """Peak resident memory."""
    output: str


def snakemake(folder: Path, *arguments: str) -> Measured:
    return measure([sys.executable, "-m", "snakemake", *arguments], folder)


def measure(command: list[str], folder: Path) -> Measured:
    """Run a command to its end. If it fails, exit with the end of its output."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    with tempfile.TemporaryFile("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        output.seek(0)
        text = output.read()
    if status:
        sys.exit(text[-4000:])
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, text)


def rows(folder: Path, name: str, cell: str) -> tuple[str, str]:
    """The lines of one size: planning the whole matrix, and the cost of each job."""
    config = ["--config", f"scale=graph_{name}", "--"]
    parsed = snakemake(folder, "--list-rules", *config)
    one = snakemake(folder, *PLAN, "--force", "--nolock", *config, f"results/graph_{name}/metrics/{cell}.json")
    whole = snakemake(folder, *PLAN, *config, "all")
    jobs = count("total", whole)
    planned = f"| {name} | {count('metrics', whole)} | {jobs} | {row(whole)} | {1000 * whole.processor / jobs:.2f} |"
    return planned, f"| {name} | {row(parsed)} | {row(one)} |"


def count(rule: str, planned: Measured) -> int:
    """The number of jobs of a rule. `metrics` has one for each cell."""
    return int(re.findall(rf"^{rule} +(\d+)$", planned.output, re.MULTILINE)[-1])


def row(measured: Measured) -> str:
    return f"{measured.seconds:.1f} | {measured.processor:.1f} | {measured.gib:.2f}"


def shares(folder: Path, sizes: list[str]) -> list[str]:
    """One line per part: its share of the time by cProfile, for each size, so that growing parts are visible."""
    profiles = []
    for name in sizes:
        file = folder / f"{name}.profile"
        config = ["--config", f"scale=graph_{name}", "--", "all"]
        measure([sys.executable, "-m", "cProfile", "-o", str(file), "-m", "snakemake", *PLAN, *config], folder)
        stats = pstats.Stats(str(file)).stats
        spent = {(Path(function[0]).name, function[2]): entry[3] for function, entry in stats.items()}
        profiles.append((spent, spent["__main__.py", "<module>"]))
    return [
        f"| {part} | " + " | ".join(f"{100 * spent.get(key, 0) / whole:.1f} %" for spent, whole in profiles) + " |"
        for part, key in PARTS.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--shares", nargs="+", choices=SIZES, default=["1k", "5k"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cell = prepare(folder)
        snakemake(folder, "--dry-run", "--cores", "1", "--config", "scale=graph_1k")  # compiles, reads every source
        planned, paid = zip(*(rows(folder, name, cell) for name in given.sizes), strict=True)
        spent = shares(folder, given.shares)
    lines = [
        "# The graph",
        "",
        f"{METHODS} methods x {DATASETS} datasets x seeds x variants beside the matrix of `{BASE}`, nothing built. "
        f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}.",
        "",
        "| `snakemake -n all` | cells | jobs | seconds | processor seconds | GiB | processor ms a job |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *planned,
        "",
        "What each job of a cluster pays before it begins: reading the rules, and planning its own target (a cell).",
        "",
        "| size | rules: s | processor s | GiB | one target: s | processor s | GiB |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *paid,
        "",
        "Where the time of `snakemake -n all` goes (cProfile, which burdens short functions):",
        "",
        "| share | " + " | ".join(given.shares) + " |",
        "|---|" + "---:|" * len(given.shares),
        *spent,
        "",
    ]
    (ROOT / "benchmarks/graph.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
