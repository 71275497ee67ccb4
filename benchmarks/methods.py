"""Pictures per second of every method, anonymizing and recovering, with the checkpoints of `make reproduce`.

Prints a table and writes benchmarks/methods.md.
"""

import argparse
import platform
import time
from pathlib import Path

import torch

from masquerade.cli import photographs
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.params import loading as params

ROOT = Path(__file__).parents[1]


def benchmark(scale: str, threads: int, count: int) -> list[str]:
    """One row for each method (its first variant): loading, anonymizing, recovering."""
    torch.set_num_threads(threads)
    parameters, rows = params.load(ROOT, scale), []
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    faces = archive.load(rows=archive.select("test").head(count))
    for name in parameters.methods:
        start = time.perf_counter()
        method, variant = photographs.method(ROOT, parameters, name, None, strict=False)
        loading = time.perf_counter() - start
        method.observe([faces])
        keys = method.capabilities.keys
        given = [keys.experiment(0)] * len(faces) if keys else None
        made, anonymizing = best(lambda method=method, given=given: method.anonymize(faces, 0, given))
        recovering = ""
        if method.capabilities.invertible:
            pictures = to_float(to_uint8(made))
            seconds = best(lambda method=method, given=given, pictures=pictures: method.recover(pictures, given))[1]
            recovering = f"{len(faces) / seconds:.1f}"
        rows.append(f"| `{name}/{variant}` | {loading:.2f} | {len(faces) / anonymizing:.1f} | {recovering} |")
    return rows


def best(act, rounds: int = 3):
    """(the result, the shortest time of ``rounds`` calls in seconds)."""
    result, least = None, float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        result = act()
        least = min(least, time.perf_counter() - start)
    return result, least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--faces", type=int, default=32)
    given = parser.parse_args()
    table = [
        f"Scale `{given.scale}`, {given.faces} faces side by side, {given.threads} thread, {platform.machine()}, "
        f"Python {platform.python_version()}; the best of three rounds.",
        "",
        "| method | load (s) | anonymizes (pictures a second) | recovers (pictures a second) |",
        "|---|---:|---:|---:|",
        *benchmark(given.scale, given.threads, given.faces),
    ]
    (ROOT / "benchmarks" / "methods.md").write_text("# Methods\n\n" + "\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
