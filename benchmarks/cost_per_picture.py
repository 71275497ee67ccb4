"""Seconds in which every method anonymizes one image, beside what its paper prints (IdentityDP, section V.H).

Needs no build: the time of a network depends on its size and not on its weights, so the networks of the scale are
trained for one round. Prints a table and writes benchmarks/cost_per_picture.md.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pages import MACHINE, ROOT, best, table, write

from masquerade import faces
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, Faces
from masquerade.core.seeding import derive_seed
from masquerade.core.settings import Settings
from masquerade.methods import Method, Resources
from masquerade.methods.latent import fakes
from masquerade.methods.latent.space import LatentSpace
from masquerade.papers import reference
from masquerade.params import loading
from masquerade.params.parameters import Parameters, build_training_params
from masquerade.training.settings import TrainingJob

PEOPLE = {
    "identities": {"train": 300, "validation": 8, "test": 16},
    "pictures_per_identity": {"train": 2, "validation": 2, "test": 1},
}
"""Enough for one round of every training."""


class Untrained:
    """Methods of a scale whose networks were trained for one round, with their files in ``folder``."""

    def __init__(self, parameters: Parameters, folder: Path):
        self.parameters, self.folder = parameters, folder
        dataset = parameters.tree["datasets"]["synthetic_hq"]
        drawn = discovery.load("faces", "synthetic_hq")
        archive = folder / "faces.zip"
        faces.build(drawn(drawn.Params(**{**dataset, **PEOPLE})), archive, parameters.image.size, 0,
                    parameters.people.model_dump())  # fmt: skip
        self.archive = FaceArchive(archive)

    def method(self, name: str, variant: str) -> Method:
        """A method that has observed the test faces. ``variant`` is none of its ablations."""
        cls, block = discovery.load("methods", name), self.parameters.methods[name]
        backbones = {need: self._backbone(need) for need in cls.needs}
        checkpoint = self.folder / f"method.{name}.safetensors" if cls.capabilities.trains else None
        knobs = build_training_params(cls, self.parameters.tree["methods"][name]["params"], None)
        if checkpoint and not checkpoint.is_file():
            cls.train(shortened(knobs), self._job(checkpoint, cls.needs, cls.people))
        resources = Resources(
            checkpoint,
            backbones,
            self.archive if cls.capabilities.gallery else None,
            self._fakes() if cls.capabilities.fakes else None,
        )
        method = cls(knobs, block.variants[variant], resources)
        method.observe(self.archive.batches(len(self.archive), "test"))
        return method

    def _backbone(self, name: str) -> Path:
        checkpoint, cls = self.folder / f"{name}.safetensors", discovery.load("backbones", name)
        if not checkpoint.is_file():
            job = self._job(checkpoint, cls.needs, cls.people)
            cls(shortened(self.parameters.backbones[name])).train(job)
        return checkpoint

    def _job(self, checkpoint: Path, needs: tuple[str, ...], people: str) -> TrainingJob:
        return TrainingJob(
            self.archive.path, {need: self._backbone(need) for need in needs}, checkpoint, checkpoint.with_suffix(".s"),
            derive_seed(0, checkpoint.name), torch.get_num_threads(), lambda *_: None, lambda *_: None, people=people,
        )  # fmt: skip

    def _fakes(self) -> Path:
        file, settings = self.folder / "fakes.safetensors", self.parameters.fakes
        if not file.is_file():
            space = LatentSpace({name: self._backbone(name) for name in ("generator", "semantics")})
            fakes.write_fakes(space, file, settings.count, settings.psi, seed=0)
        return file


def shortened(block: Settings) -> Settings:
    """The parameters of a training with one update in place of each number of them."""

    def change(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: min(part, 1) if name == "steps" else change(part) for name, part in value.items()}

    return type(block)(**change(block.model_dump()))


def rows(parameters: Parameters, folder: Path, count: int) -> list[list[str]]:
    """One row for each method: seconds of one image alone (median of ``count``), side by side (mean), and printed."""
    untrained, lines = Untrained(parameters, folder), []
    index = untrained.archive.select("test").head(count)
    together = untrained.archive.load(rows=index)
    alone = [untrained.archive.load(rows=index.iloc[[row]]) for row in range(len(index))]
    printed = {cost.method: cost for cost in reference.load_costs(ROOT / reference.COSTS)}
    for name, block in parameters.methods.items():
        cost = printed.get(name)
        variant = cost.variant if cost else next(iter(block.variants))
        method = untrained.method(name, variant)
        each, every = median(seconds(method, one) for one in alone), seconds(method, together) / len(together)
        paper = f"{cost.printed.text} ({cost.device}, {cost.source})" if cost else ""
        lines.append([f"`{name}/{variant}`", f"{each:.4f}", f"{every:.4f}", paper])
    return lines


def seconds(method: Method, given: Faces) -> float:
    """The least time of three calls. Its result is an array in memory, so nothing is left to do on a GPU.

    On one thread of the processor it is CPU time, which other work on the machine changes least.
    """
    clock = time.perf_counter if torch.cuda.is_available() or torch.get_num_threads() > 1 else time.process_time
    kind = method.capabilities.keys
    keys = [kind.experiment(0, name) for name in given.ids] if kind else None
    return best(lambda: method.anonymize(given, 0, keys), clock=clock)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--faces", type=int, default=16)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    parameters = loading.load(ROOT, given.scale)
    device = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    with tempfile.TemporaryDirectory() as folder:
        measured = rows(parameters, Path(folder), given.faces)
    side = parameters.image.size
    write(
        "cost_per_picture",
        "# Cost per image",
        f"Scale `{given.scale}`, {given.faces} images of {side} x {side} pixels, {given.threads} thread, "
        f"{device}{MACHINE}; the least of three rounds, of one image the median over all; CPU time "
        "if there is no GPU and one thread; faces that are detected and aligned already, networks that are loaded, "
        "with the weights of one round of training.",
        table(("method", "one image alone (s)", "an image of all side by side (s)", "printed (s)"), measured),
        *(f"`{cost.method}`: {cost.note}." for cost in reference.load_costs(ROOT / reference.COSTS) if cost.note),
    )


if __name__ == "__main__":
    main()
