"""Seconds in which every method anonymizes one picture, beside what its paper prints (IdentityDP, section V.H).

Uses the checkpoints of `make reproduce`. Prints a table and writes benchmarks/cost_per_picture.md.
"""

import argparse
import platform
import time
from pathlib import Path
from statistics import median

import torch

from masquerade.cli import photographs
from masquerade.core.images import FaceArchive
from masquerade.papers import printed_costs
from masquerade.params import loading

ROOT = Path(__file__).parents[1]


def rows(scale: str, threads: int, count: int) -> list[str]:
    """One row for each method: seconds alone (median of ``count`` pictures), side by side (mean), and printed."""
    torch.set_num_threads(threads)
    parameters, lines = loading.load(ROOT, scale), []
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    index = archive.select("test").head(count)
    together, alone = archive.load(rows=index), [archive.load(rows=index.iloc[[row]]) for row in range(len(index))]
    printed = {(cost.method, cost.variant): cost for cost in printed_costs.load(ROOT / printed_costs.FILE)}
    for name in parameters.methods:
        variant = next((variant for method, variant in printed if method == name), None)
        method, variant = photographs.method(ROOT, parameters, name, variant, strict=False)
        method.observe([together])
        key = method.capabilities.keys.experiment(0) if method.capabilities.keys else None
        seconds(lambda method=method, key=key: method.anonymize(alone[0], 0, key))  # the first call is slower
        each = [seconds(lambda method=method, key=key, one=one: method.anonymize(one, 0, key)) for one in alone]
        every = seconds(lambda method=method, key=key: method.anonymize(together, 0, key)) / len(together)
        cost = printed.get((name, variant))
        paper = f"{cost.printed.text} ({cost.device}, {cost.source})" if cost else ""
        lines.append(f"| `{name}/{variant}` | {median(each):.4f} | {every:.4f} | {paper} |")
    return [*lines, "", *(f"`{cost.method}`: {cost.note}." for cost in printed.values() if cost.note)]


def seconds(act) -> float:
    """The time of one call. Its result is an array in memory, so nothing is left to do on a GPU."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--faces", type=int, default=16)
    given = parser.parse_args()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    size = loading.load(ROOT, given.scale).image.size
    table = [
        f"Scale `{given.scale}`, {given.faces} pictures of {size} x {size} pixels, {given.threads} thread, {device}, "
        f"Python {platform.python_version()}; faces that are detected and aligned already, networks that are loaded.",
        "",
        "| method | one picture alone (s) | a picture of all side by side (s) | printed (s) |",
        "|---|---:|---:|---|",
        *rows(given.scale, given.threads, given.faces),
    ]
    page = ROOT / "benchmarks" / "cost_per_picture.md"
    page.write_text("# Cost per picture\n\n" + "\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
