"""Images per second of every method, anonymizing and recovering, with the checkpoints of `make reproduce`.

Prints a table and writes benchmarks/methods.md.
"""

import argparse
import time

import torch
from pages import MACHINE, ROOT, best, table, write

from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.params import loading as params
from masquerade.pipeline.photographs import choosing


def benchmark(scale: str, threads: int, count: int) -> list[list[str]]:
    """One row for each method (its first variant): loading, anonymizing, recovering."""
    torch.set_num_threads(threads)
    parameters, rows = params.load(ROOT, scale), []
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    faces = archive.load(rows=archive.select("test").head(count))
    for name in parameters.methods:
        start = time.perf_counter()
        method, maker = choosing.build_method(ROOT, parameters, name, None, strict=False)
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
        rows.append([f"`{name}/{maker.variant}`", f"{loading:.2f}", f"{len(faces) / anonymizing:.1f}", recovering])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--faces", type=int, default=32)
    given = parser.parse_args()
    heading = ("method", "load (s)", "anonymizes (images a second)", "recovers (images a second)")
    write(
        "methods",
        "# Methods",
        f"Scale `{given.scale}`, {given.faces} faces side by side, {given.threads} thread, {MACHINE}; the best of "
        "three rounds.",
        table(heading, benchmark(given.scale, given.threads, given.faces)),
    )


if __name__ == "__main__":
    main()
