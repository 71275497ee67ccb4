"""Milliseconds of processor time per face: every judge of a scale, and the whole pass of a set. Writes judges.md.

Judges with a network that was trained here need the checkpoints of `make reproduce`; without them they are left out.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pages import MACHINE, ROOT, best, table, write

if TYPE_CHECKING:
    from masquerade.judges import Judge

# Whatever of Masquerade the whole pass imports is a part of its time, so this module imports nothing of it here.
BATCH = 32
KNOBS = "judges.json"


def knobs_of(scale: str) -> dict[str, dict]:
    """The parameters of the judges that measure every set, as a job of the rule ``measure`` gets them."""
    from masquerade.params import loading

    settings = loading.load(ROOT, scale)
    return {name: settings.judges[name].model_dump(mode="json") for name in settings.measure.judges}


def judges_of(knobs: Mapping[str, dict], checkpoints: Path) -> "dict[str, Callable[[], Judge]]":
    """The judges whose networks are there: name -> a function that loads it."""
    from masquerade.core import discovery

    backbones = {path.stem: path for path in checkpoints.glob("*.safetensors")}
    classes = {name: discovery.load("judges", name) for name in knobs}
    return {
        name: lambda name=name, cls=cls: cls(cls.Params(**knobs[name]), backbones)
        for name, cls in classes.items()
        if set(cls.needs) <= set(backbones) and not cls.assets
    }


def one_by_one(scale: str, checkpoints: Path, count: int, repeats: int) -> list[list[str]]:
    """One row a judge: loading and the first face (s), time a face (ms, best of ``repeats``), faces detected."""
    import numpy as np

    from masquerade.pipeline import measuring, preload

    preload.load_libraries()
    faces, rows = drawn(scale, count), []
    sources = faces[::-1].copy()
    with measuring.limit_threads(1):
        for name, load in judges_of(knobs_of(scale), checkpoints).items():
            judge, loading = best(load, 1, time.process_time)
            _, first = best(lambda judge=judge: judge.measure(faces[:1], sources[:1]), 1, time.process_time)

            def measured(judge: "Judge" = judge) -> list[Mapping[str, np.ndarray]]:
                starts = range(0, len(faces), BATCH)
                return [judge.measure(faces[at : at + BATCH], sources[at : at + BATCH]) for at in starts]

            parts, seconds = best(measured, repeats, time.process_time)
            found = [part["detected"].sum() for part in parts if "detected" in part]
            detected = f"{sum(found)} of {len(faces)}" if found else ""
            each = 1000 * seconds / len(faces)
            rows.append([f"`{name}`", f"{loading:.2f}", f"{first:.2f}", f"{each:.1f}", detected])
    return rows


def drawn(scale: str, count: int):
    """The first faces of synthetic_hq at this scale, float32 (count, 3, H, W)."""
    import numpy as np

    from masquerade.core import discovery
    from masquerade.core.images import to_float
    from masquerade.params import loading

    settings = loading.load(ROOT, scale)
    dataset = discovery.load("faces", "synthetic_hq")(settings.datasets["synthetic_hq"])
    records = islice(dataset.records(settings.image.size, 0, 1), count)
    return to_float(np.stack([record.picture for record in records]))


def write_sets(folder: Path, scale: str, count: int) -> None:
    """Write ``source.zip`` with drawn faces, ``derived.zip`` with the same in reverse order, and KNOBS."""
    from masquerade.core.images import ArchiveWriter, to_uint8

    (folder / KNOBS).write_text(json.dumps(knobs_of(scale)), encoding="utf-8")
    pictures = to_uint8(drawn(scale, count))
    for name, order in (("source", pictures), ("derived", pictures[::-1])):
        with ArchiveWriter(folder / f"{name}.zip") as out:
            for number, picture in enumerate(order):
                row = {"id": f"{name}{number}", "identity": str(number), "split": "test"}
                out.add(picture, row | ({"source_id": f"source{number}"} if name == "derived" else {}))


def whole_pass(folder: Path, checkpoints: Path) -> None:
    """What a job of the rule ``measure`` does: load every judge, read the images, measure, write the table."""
    from masquerade.pipeline import measuring

    knobs = json.loads((folder / KNOBS).read_text(encoding="utf-8"))
    judges = {name: load() for name, load in judges_of(knobs, checkpoints).items()}
    derived, source = folder / "derived.zip", folder / "source.zip"
    measuring.measure(derived, folder / "measured.parquet", judges, ["test"], BATCH, source)


def cost(child: int) -> float:
    """Seconds of processor of a child process. Raises RuntimeError if it failed."""
    _, status, used = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"the whole pass ended with status {status}")
    return used.ru_utime + used.ru_stime


def forked(folder: Path, checkpoints: Path) -> float:
    """Seconds of processor of a whole pass, in a process forked from this one after the imports of libraries."""
    from masquerade.pipeline import preload

    preload.load_libraries()
    gc.collect()
    gc.freeze()  # as the fork server does
    child = os.fork()
    if child == 0:
        whole_pass(folder, checkpoints)
        os._exit(0)
    return cost(child)


def of_program(start: str, folder: Path, given: argparse.Namespace) -> float:
    """Seconds of processor of a whole pass, the best of several: ``cold`` (with all imports) or ``forked``."""
    command = [sys.executable, __file__, "--checkpoints", str(given.checkpoints)]
    seconds = []
    for _ in range(given.repeats):
        passing = [*command, "--pass", start, str(folder)]
        program = subprocess.Popen(passing, stdout=subprocess.PIPE, text=True)
        output = program.stdout.read() if program.stdout else ""
        seconds.append(cost(program.pid) if start == "cold" else float(json.loads(output)))
        if start == "forked":
            program.wait()
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--faces", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=3, help="the best one of so many is printed")
    parser.add_argument("--checkpoints", type=Path, help="folder with the backbones of the scale")
    parser.add_argument("--pass", dest="only", nargs=2, help=argparse.SUPPRESS)  # the program calls itself
    given = parser.parse_args()
    given.checkpoints = given.checkpoints or ROOT / "checkpoints" / given.scale / "backbones"
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    if given.only:
        act = {"cold": whole_pass, "forked": forked}[given.only[0]]
        print(json.dumps(act(Path(given.only[1]), given.checkpoints)))
        return
    with tempfile.TemporaryDirectory() as name:
        write_sets(Path(name), given.scale, given.faces)
        starts = ("forked from a process that has imported the libraries", "forked"), ("cold", "cold")
        passes = [
            (title, f"{seconds:.2f}", f"{1000 * seconds / given.faces:.1f}")
            for title, start in starts
            for seconds in [of_program(start, Path(name), given)]
        ]
    judges = one_by_one(given.scale, given.checkpoints, given.faces, given.repeats)
    write(
        "judges",
        "# Judges",
        f"Processor time of one thread; {given.faces} faces with references, scale {given.scale}; {MACHINE}; the best "
        f"of {given.repeats}.",
        table(("a set, all judges, start included", "seconds", "ms a face"), passes),
        table(("judge", "load (s)", "first face (s)", "ms a face", "detected"), judges),
    )


if __name__ == "__main__":
    main()
