"""Time and memory of planning (`snakemake -n`) with a hundred methods, ten datasets and five seeds.

In a copy of the working tree, methods that depend on a seed are copied under new names (module, block of params.yaml)
until there are a hundred more, and the two procedural datasets until there are ten more. Each new dataset has a table
of the hundred methods. The tables of the papers stay. No job runs. Prints a table and writes benchmarks/graph.md.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

import yaml
from pages import MACHINE, ROOT, table, write
from pipeline import Measured, clone, measured

from masquerade.core import discovery
from masquerade.params import loading, matrix, overlays

METHODS, DATASETS, BASE = 100, 10, "mini"
SIZES = {"1k": (1, 1), "5k": (5, 1), "10k": (5, 2), "50k": (5, 10)}
"""Name -> (seeds, variants of each method)."""
PLAN = ["--dry-run", "--cores", "1", "--quiet", "rules", "host"]


def copies(folder: Path, room: str, originals: list[str], count: int) -> dict[str, str]:
    """Write the copies. Returns the name of each copy -> the name of its original."""
    made = {f"{name}_{number:03d}": name for number, name in enumerate(islice(cycle(originals), count))}
    for name, original in made.items():
        shutil.copy(discovery.find_module(room, original), folder / f"src/masquerade/{room}/{name}.py")
    return made


def overlay(methods: dict[str, str], datasets: dict[str, str], seeds: int, variants: int) -> dict:
    """The scale: ``BASE`` with its whole matrix, and the copies beside it."""
    base, over = loading.load(ROOT, BASE).tree, overlays.read_yaml(ROOT / f"scales/{BASE}.yaml")

    def block(original: str) -> dict:
        own = base["methods"][original]
        knobs = islice(cycle(own["variants"].values()), variants)
        return {
            **({"published": ""} if "published" in own else {}),
            "params": own["params"],
            "variants": {f"v_{number}": values for number, values in enumerate(knobs)},
        }

    # The weights of weights/ have one name and one seed, so all methods train.
    trained = {name: {"published": ""} for name, own in base["methods"].items() if own.get("published")}
    more = {
        "seeds": list(range(seeds)),
        "papers": [*base["papers"], "everybody"],
        "methods": trained | {name: block(original) for name, original in methods.items()},
        "datasets": {name: base["datasets"][original] for name, original in datasets.items()},
        "matrix": {"evaluate": {name: ["*/v_*"] for name in datasets}},
        "recovery": {"cells": {next(iter(datasets)): [f"{name}/*" for name in methods if invertible(methods[name])]}},
    }
    return overlays.overlay(over, more)


def invertible(method: str) -> bool:
    return discovery.load("methods", method).capabilities.invertible


def paper(dataset: str, methods: dict[str, str]) -> dict:
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


def write_yaml(path: Path, tree: dict) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")


def prepare(folder: Path) -> str:
    """Fill the copy of the working tree. Returns the path of one cell that every size has."""
    clone("", folder)
    named = [name for name in loading.load(ROOT, BASE).methods if not matrix.runs_once(name)]
    named = [name for name in named if not discovery.load("methods", name).capabilities.control]
    methods = copies(folder, "methods", named, METHODS)
    datasets = copies(folder, "faces", ["synthetic_hq", "synthetic_wild"], DATASETS)
    for name, (seeds, variants) in SIZES.items():
        write_yaml(folder / f"scales/graph_{name}.yaml", overlay(methods, datasets, seeds, variants))
    for dataset in datasets:
        write_yaml(folder / f"reference/everybody/{dataset}.yaml", paper(dataset, methods))
    return f"{next(reversed(datasets))}/{next(reversed(methods))}/v_0/0"


def snakemake(folder: Path, *arguments: str) -> Measured:
    return measured([sys.executable, "-m", "snakemake", *arguments], folder)


def rows(folder: Path, name: str, cell: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rows of one size: planning the whole matrix, and the cost of each job."""
    config = ["--config", f"scale=graph_{name}", "--"]
    parsed = snakemake(folder, "--list-rules", *config)
    one = snakemake(folder, *PLAN, "--force", "--nolock", *config, f"results/graph_{name}/metrics/{cell}.json")
    whole = snakemake(folder, *PLAN, *config, "all")
    jobs = count("total", whole)
    planned = name, str(count("evaluate", whole)), str(jobs), *row(whole), f"{1000 * whole.processor / jobs:.2f}"
    return planned, (name, *row(parsed), *row(one))


def count(rule: str, planned: Measured) -> int:
    """The number of jobs of a rule. `metrics` has one for each cell."""
    return int(re.findall(rf"^{rule} +(\d+)$", planned.output, re.MULTILINE)[-1])


def row(run: Measured) -> tuple[str, str, str]:
    return f"{run.seconds:.1f}", f"{run.processor:.1f}", f"{run.memory:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cell = prepare(folder)
        snakemake(folder, "--dry-run", "--cores", "1", "--config", "scale=graph_1k")  # compiles, reads every source
        planned, paid = zip(*(rows(folder, name, cell) for name in given.sizes), strict=True)
    costs = ("seconds", "processor seconds", "GiB")
    write(
        "graph",
        "# The graph",
        f"{METHODS} methods x {DATASETS} datasets x seeds x variants beside the matrix of `{BASE}`, nothing built. "
        f"{MACHINE}, {os.cpu_count()} cores, one used.",
        table(("`snakemake -n all`", "cells", "jobs", *costs, "processor ms a job"), planned),
        "What each job of a cluster pays before it begins: reading the rules, and planning its own target (a cell).",
        table(("size", *(f"{what}: {cost}" for what in ("rules", "one target") for cost in costs)), paid),
    )


if __name__ == "__main__":
    main()
