"""Milliseconds per procedural face of every judge whose weights come with a package. Writes benchmarks/judges.md."""

import argparse
import platform
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from masquerade.core import discovery
from masquerade.core.images import to_float
from masquerade.params import loading as params
from masquerade.pipeline import measuring

ROOT = Path(__file__).parent.parent


def procedural(count: int, scale: str) -> np.ndarray:
    """The first faces of synthetic_hq at this scale, float32 (count, 3, H, W)."""
    settings = params.load(ROOT, scale)
    dataset = discovery.load("faces", "synthetic_hq")(settings.datasets["synthetic_hq"])
    records = islice(dataset.records(settings.image.size, 0, 1), count)
    return to_float(np.stack([record.picture for record in records]))


def timed(act: Callable[[], object]) -> tuple[float, float, object]:
    """(seconds by the clock, seconds of processor, result)."""
    clock, processor = time.perf_counter(), time.process_time()
    result = act()
    return time.perf_counter() - clock, time.process_time() - processor, result


def benchmark(faces: np.ndarray, scale: str) -> list[str]:
    """One row a judge: loading (s), clock and processor time a face (ms), share of faces detected."""
    rows = []
    for name, settings in params.load(ROOT, scale).judges.items():
        cls = discovery.load("judges", name)
        if cls.needs or cls.assets:
            continue
        loading, _, judge = timed(lambda cls=cls, settings=settings: cls(settings, {}))
        judge.measure(faces[:1], faces[:1])  # the first call also loads the network
        with measuring.limited_threads(1):
            clock, processor, values = timed(lambda judge=judge: judge.measure(faces, faces[::-1].copy()))
        detected = f"{values['detected'].sum()} of {len(faces)}" if "detected" in values else ""
        per_face = 1000 / len(faces)
        rows.append(f"| `{name}` | {loading:.2f} | {clock * per_face:.1f} | {processor * per_face:.1f} | {detected} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--faces", type=int, default=32)
    given = parser.parse_args()
    faces = procedural(given.faces, given.scale)
    table = [
        f"{len(faces)} faces of {faces.shape[-1]} x {faces.shape[-1]} pixels, one thread, reference given, "
        f"{platform.machine()}, Python {platform.python_version()}.",
        "The first judges that need PyTorch and torchvision pay for their start.",
        "",
        "| judge | load (s) | clock (ms a face) | processor (ms a face) | detected |",
        "|---|---|---|---|---|",
        *benchmark(faces, given.scale),
    ]
    (ROOT / "benchmarks" / "judges.md").write_text("# Judges\n\n" + "\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
