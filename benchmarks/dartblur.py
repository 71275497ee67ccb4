"""DartBlur's claim: a detector that learns from its pictures finds clear faces better than one that learns from blur.

Trains the small detector of the method from nothing on clear, blurred and DartBlurred pictures of the methods' people
and tests it on clear pictures of test people. Prints a table and writes benchmarks/dartblur.md.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from masquerade.cli import photographs
from masquerade.core import seeding
from masquerade.core.images import FaceArchive
from masquerade.methods._inpainting import region, training
from masquerade.methods.dartblur.blurring import blurred
from masquerade.methods.dartblur.method import DartBlur
from masquerade.methods.dartblur.training import DartBlurTask
from masquerade.networks.grid_detector import GridDetector, detection, found
from masquerade.params import loading as params
from masquerade.training.optimisers import Optimisers, cooldown_share

ROOT = Path(__file__).parents[1]
SEEDS = 1
Change = Callable[[Tensor, np.ndarray], Tensor]


def detector(task: DartBlurTask, change: Change, seed: int) -> GridDetector:
    """A detector that learnt from the pictures that ``change`` makes."""
    torch.manual_seed(seed)
    knobs = task.settings.detector
    network = GridDetector(knobs.widths)
    optimiser = Optimisers({"detector": network}, knobs.learning_rate, (0.9, 0.999))
    for step in range(knobs.steps):
        images, corners = task._views(seeding.generator(seed, "detector", step), knobs.batch)
        loss = detection(network(change(images, corners)), task._truth(corners))
        optimiser.descend(loss, cooldown_share(step, knobs.steps, 0.5))
    return network.eval()


@torch.inference_mode()
def tested(network: GridDetector, images: Tensor, corners: np.ndarray) -> tuple[float, float]:
    """Share of faces in whose cell the largest score is, and mean overlap (intersection over union) of the boxes."""
    right, overlap = found(network(images), torch.from_numpy(corners), images.shape[-1])
    return right.float().mean().item(), overlap.mean().item()


def benchmark(scale: str) -> list[str]:
    """The rows."""
    parameters = params.load(ROOT, scale)
    archive = FaceArchive(ROOT / f"data/{scale}/faces/synthetic_hq.zip")
    size = archive.facts["size"]
    method: Any = photographs.method(ROOT, parameters, "dartblur", "default", strict=False)[0]
    task = DartBlurTask(method.params, training.people(archive, DartBlur.people, size), 0)
    test = DartBlurTask(method.params, training.people(archive, "test", size), 0)
    images, corners = test._views(seeding.generator(0, "test"), 512)

    def plain(views: Tensor, boxes: np.ndarray) -> Tensor:
        return torch.from_numpy(blurred(views.numpy(), boxes))

    @torch.no_grad()
    def changed(views: Tensor, boxes: np.ndarray) -> Tensor:
        masks = torch.from_numpy(region.masks_of(boxes, size)[:, None].astype(np.float32))
        blur = plain(views, boxes)
        return blur * (1 - masks) + method._network(blur, masks) * masks

    changes: dict[str, Change] = {
        "clear": lambda views, _: views, "blurred": plain, "DartBlur": changed
    }  # fmt: skip
    rows = []
    for name, change in changes.items():
        measured = [tested(detector(task, change, seed), images, corners) for seed in range(SEEDS)]
        values = [
            f"{np.mean(of):.3f} ({', '.join(f'{each:.3f}' for each in of)})" for of in zip(*measured, strict=True)
        ]
        rows.append(f"| {name} | {' | '.join(values)} |")
    people = archive.select("test")["identity"].nunique()
    return [*rows, "", f"{len(images)} shifted and scaled clear pictures of {people} test people. Seeds: {SEEDS}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="evening")
    given = parser.parse_args()
    head = ["| learnt from | face in the right cell | overlap of the boxes |", "|---|---:|---:|"]
    table = [*head, *benchmark(given.scale)]
    page = f"# A detector that learns from DartBlur\n\nScale `{given.scale}`.\n\n"
    (ROOT / "benchmarks" / "dartblur.md").write_text(page + "\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
