"""Measures of the drawn region what no metric of the matrix says: whether the code is used, the seam, copied people.

Prints a table and writes benchmarks/inpainters.md, from the checkpoints of a scale. Faces are those of test people.
"""

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from masquerade.cli import photographs
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, Faces, to_float, to_uint8
from masquerade.methods import Method
from masquerade.methods._inpainting import region
from masquerade.params import loading as params

ROOT = Path(__file__).parents[1]
BATCH = 64  # pictures at a time
CODES = 4  # pictures of one face, under as many codes
JUDGE = "recogniser_a"
VARIANTS = {
    "deepprivacy": ("default", "random"),
    "deepprivacy2": ("default", "random"),
    "ciagan": ("default",),
    "ldfa": ("default", "filled"),
}
REGIONS: dict[str, Callable] = {"ciagan": region.polygon_masks}  # of the others: the box
HEADING = (
    ("method", "likeness of two pictures of one face", "change of a pixel", "seam", "nearest person of the training"),
    ("", "cosine, two codes", "of 255, two codes", "drawn / original", "cosine: drawn / original"),
)


def row(name: str, variant: str, method: Method, faces: Faces, encode: Callable, training: torch.Tensor) -> str:
    """The measured values of one variant."""
    keys = method.capabilities.keys
    made = []
    for code in range(CODES):
        given = [keys.experiment(code, name) for name in faces.ids] if keys else None
        made.append(to_uint8(method.anonymize(faces, code, given)))
    vectors = [encode(pictures) for pictures in made]
    pairs = list(combinations(range(CODES), 2))
    alike = np.mean([(vectors[a] * vectors[b]).sum(dim=1).mean().item() for a, b in pairs])
    size = faces.images.shape[-1]
    masks = REGIONS.get(name, region.box_masks)(faces.landmarks, size)
    change = np.mean([np.abs(made[a].astype(int) - made[b])[masks].mean() for a, b in pairs])
    originals = to_uint8(faces.images)
    seams = [seam(pictures, masks) for pictures in (made[0], originals)]
    nearest = [(each @ training.T).max(dim=1).values.mean().item() for each in (vectors[0], encode(originals))]
    return (
        f"| `{name}/{variant}` | {alike:.2f} | {change:.1f} | {seams[0]:.1f} / {seams[1]:.1f} "
        f"| {nearest[0]:.2f} / {nearest[1]:.2f} |"
    )


def seam(pictures: np.ndarray, masks: np.ndarray) -> float:
    """Mean difference, of 255, of two neighbouring pixels of which one is drawn. uint8 (N, S, S, 3), bool (N, S, S)."""
    steps = []
    for along in (1, 2):
        border = np.diff(masks, axis=along)
        steps.append(np.abs(np.diff(pictures.astype(int), axis=along))[border])
    return float(np.concatenate(steps).mean())


def encoder(network: nn.Module) -> Callable[[np.ndarray], torch.Tensor]:
    """uint8 (N, S, S, 3) -> unit vectors (N, D) of a recogniser."""

    def encode(pictures: np.ndarray) -> torch.Tensor:
        with torch.inference_mode():
            parts = np.split(pictures, range(BATCH, len(pictures), BATCH))
            return normalize(torch.cat([network(torch.from_numpy(to_float(part))) for part in parts]))

    return encode


def benchmark(scale: str, count: int, methods: list[str]) -> list[str]:
    """The rows of some methods."""
    parameters, rows = params.load(ROOT, scale), []
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    test = archive.select("test").drop_duplicates("identity").head(count)
    faces = archive.load(rows=test)
    network = discovery.load("backbones", JUDGE).load(ROOT / f"checkpoints/{scale}/backbones/{JUDGE}.safetensors")
    encode = encoder(network)
    known = [encode(to_uint8(some.images)) for some in archive.batches(BATCH, Method.people)]
    training = torch.cat(known)
    for name in methods:
        for variant in VARIANTS[name]:
            method, _ = photographs.method(ROOT, parameters, name, variant, strict=False)
            rows.append(row(name, variant, method, faces, encode, training))
    return [*rows, "", f"{len(faces)} people, {len(training)} pictures of the training, cosines by `{JUDGE}`."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="evening")
    parser.add_argument("--faces", type=int, default=60)
    parser.add_argument("--methods", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    given = parser.parse_args()
    head = [f"| {' | '.join(line)} |" for line in HEADING]
    table = [head[0], "|---|---:|---:|---:|---:|", head[1], *benchmark(given.scale, given.faces, given.methods)]
    page = [f"# Inpainters\n\nScale `{given.scale}`. Codes: seeds, or keys of CIAGAN.\n", *table]
    (ROOT / "benchmarks" / "inpainters.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
