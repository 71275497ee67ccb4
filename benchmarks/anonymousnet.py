"""AnonymousNet: how often the judge of attributes sees the attribute that was asked for, and what else changes.

Each selected attribute alone is asked for with its other value, on test people. Prints a table and writes
benchmarks/anonymousnet.md. The judge `attribute_classifier` learnt from other people than the method.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from masquerade.cli import photographs
from masquerade.core import discovery
from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.images import FaceArchive
from masquerade.params import loading as params

ROOT = Path(__file__).parents[1]
HAIR = "_Hair"  # the end of the names of colours of hair, which exclude one another
HEADING = "| attribute | faces without it | it is seen | faces with it | it is gone | change of a pixel, of 255 |"


@torch.inference_mode()
def benchmark(scale: str, count: int) -> list[str]:
    """The rows."""
    parameters = params.load(ROOT, scale)
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    faces = archive.load(rows=archive.select("test").drop_duplicates("identity").head(count))
    method: Any = photographs.method(ROOT, parameters, "anonymousnet", "no_perturbation", strict=False)[0]
    judge = discovery.load("backbones", "attribute_classifier")
    judge = judge.load(ROOT / f"checkpoints/{scale}/backbones/attribute_classifier.safetensors")
    names = method.params.selected
    columns = [ATTRIBUTES.index(name) for name in names]
    images = torch.from_numpy(faces.images)
    own = (judge(images)[:, columns] > 0).float()
    colours = [place for place, name in enumerate(names) if name.endswith(HAIR)]
    rows = []
    for place, name in enumerate(names):
        wanted = own.clone()
        if place in colours:
            wanted[:, colours] = 0
        wanted[:, place] = 1 - own[:, place]
        drawn = method._network(images, wanted)
        seen, had = judge(drawn)[:, columns[place]] > 0, own[:, place] > 0
        shares = [of.float().mean().item() if len(of) else np.nan for of in (seen[~had], ~seen[had])]
        change = (drawn - images).abs().mean().item() * 127.5
        rows.append(
            f"| {name} | {int((~had).sum())} | {shares[0]:.2f} | {int(had.sum())} | {shares[1]:.2f} | {change:.1f} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="evening")
    parser.add_argument("--faces", type=int, default=60)
    given = parser.parse_args()
    table = [HEADING, "|---|---:|---:|---:|---:|---:|", *benchmark(given.scale, given.faces)]
    page = "# AnonymousNet: attributes that are asked for\n\n"
    page += f"Scale `{given.scale}`, {given.faces} test people. The judge says which attributes the originals have.\n\n"
    (ROOT / "benchmarks" / "anonymousnet.md").write_text(page + "\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
