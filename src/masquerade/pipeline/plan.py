"""The jobs of a scale, and the GPU hours of those that were measured: what `masquerade plan` prints.

The parameters give the numbers of jobs, training steps and images. The seconds of one step or image come from the first
table of ``benchmarks/gpu.md``, which holds nothing but measurements. Work that was never measured has no hours: nothing
is estimated. One row of that table, and the row that it gives the plan of scale ``paper_1024``::

    | step      | what  | scale      | mode          | seconds |
    | anonymize | falco | paper_1024 | deterministic | 2.03    |

    Work("anonymize", "falco", jobs=6, units=35_116, unit="images", seconds=2.03)
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.core.images import GALLERY, TEST
from masquerade.core.settings import Settings
from masquerade.params import matrix, paths
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.pipeline.rule_inputs import SHARED, AttackerInputs

PAGE = Path("benchmarks/gpu.md")
MODES = {True: "deterministic", False: "fast"}
"""`compute.deterministic` -> the word for it in the table."""
Measurements = Mapping[tuple[str, str, str, str], float]
"""(step, what, scale, mode) -> seconds of one training step or one image."""


@dataclass(frozen=True)
class Work:
    """All jobs of one rule of Snakemake for one network, method or dataset."""

    rule: str
    name: str
    jobs: int
    units: int
    """The training steps or the images of all jobs together."""
    unit: str
    seconds: float | None = None
    """Measured for one unit; None if this was never measured at this scale."""
    note: str = ""

    @property
    def hours(self) -> float | None:
        return None if self.seconds is None else self.units * self.seconds / 3600


def read_measurements(root: Path) -> tuple[str, Measurements]:
    """The name of the GPU, and what was measured on it. Raises ParameterError if a row is no measurement."""
    page = root / PAGE
    lines = page.read_text(encoding="utf-8").splitlines() if page.is_file() else []
    gpu = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "no GPU")
    table = takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), lines))
    titles, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table] or ([], [])
    measurements = {}
    for cells in rows:
        row = dict(zip(titles, cells, strict=False))
        if row.get("scale"):
            try:
                measurements[row["step"], row["what"], row["scale"], row["mode"]] = float(row["seconds"])
            except (KeyError, ValueError) as error:
                raise ParameterError(f"{page} has a row that is no measurement: {row} ({error!r}).") from error
    return gpu, measurements


class Plan:
    """The work of ``parameters``."""

    def __init__(self, parameters: Parameters, measurements: Measurements):
        self.parameters, self.measurements = parameters, measurements
        # a dataset whose files are not placed counts as if they were
        self.cells = [cell for cell in matrix.plan_cells(parameters, as_if_placed=True) if cell.runnable]
        self.attackers = AttackerInputs(parameters, self.cells, paths.Paths(parameters.scale))
        names = sorted({cell.dataset for cell in self.cells} | {parameters.matrix.train_on})
        datasets = {name: discovery.load("faces", name)(parameters.datasets[name]) for name in names}
        self.images = {name: dataset.count(parameters.data_seed) or {} for name, dataset in datasets.items()}
        """Dataset -> split -> number of faces; empty if only its files can give it."""

    def work(self) -> list[Work]:
        """Every row, in the order of the pipeline."""
        return [*self._data(), *self._trainings(), *self._anonymizations(), *self._attacks(), *self._measurements()]

    def _row(self, rule: str, name: str, jobs: int, units: int, unit: str, note: str = "") -> Work:
        mode = MODES[self.parameters.compute.deterministic]
        # the sets of images for attributes and attackers are anonymized as the test images are
        step = "anonymize" if rule.startswith("anonymize") else rule
        seconds = self.measurements.get((step, name, self.parameters.scale, mode))
        return Work(rule, name, jobs, units, unit, seconds, note)

    def _data(self) -> Iterator[Work]:
        for name, splits in self.images.items():
            note = "" if splits else "the number of images is unknown"
            if matrix.explain_absence(self.parameters, name):
                note = note or "not placed: counted as if it were here"
            yield self._row("faces", name, 1, sum(splits.values()), "images", note)

    def _trainings(self) -> Iterator[Work]:
        parameters = self.parameters
        for name, block in parameters.backbones.items():
            backbone = discovery.load("backbones", name)(block)
            published = backbone.package or (backbone.published.name if backbone.published else "")
            steps = 0 if published else count_steps(block)
            yield self._row("backbone", name, 1, steps, "steps", f"published: {published}" if published else "")
        for name in dict.fromkeys(cell.method for cell in self.cells if parameters.trains(cell.method)):
            ablations, cells = parameters.ablations(name), [cell for cell in self.cells if cell.method == name]
            for variant in ("", *ablations):
                seeds = {cell.seed for cell in cells if not variant or cell.variant == variant}
                pretrained = parameters.weights_name(name, variant) or (
                    "" if variant else parameters.official_role(name)
                )
                steps = 0 if pretrained else len(seeds) * count_steps(parameters.training_params(name, variant))
                if seeds:
                    rule, what = ("ablation", f"{name}/{variant}") if variant else ("method", name)
                    yield self._row(
                        rule, what, len(seeds), steps, "steps", f"pretrained: {pretrained}" * bool(pretrained)
                    )
        jobs = Counter(name for cell in self.attackers.cells for name in self.attackers.trained(cell, "{attacker}"))
        for name, count in jobs.items():
            yield self._row("attacker", name, count, count * count_steps(parameters.attackers[name]), "steps")

    def _anonymizations(self) -> Iterator[Work]:
        learned, train_on = self._count_people_images("methods"), self.parameters.matrix.train_on
        most = min(self.parameters.attributes.train_pictures or learned, learned)
        attributed = [
            cell for cell in matrix.select_by_protocol(self.parameters, self.cells, "attributes")
            if cell.dataset == train_on
        ]  # fmt: skip
        attacked = [
            (cell, self._count_attacker_images(cell) + (self._tested(cell) if keys == SHARED else 0))
            for cell in self.attackers.cells
            for keys in self.attackers.keys(cell)
        ]
        for rule, archives in (
            ("anonymize", [(cell, self._tested(cell)) for cell in self.cells]),
            ("anonymize_train", [(cell, most) for cell in attributed]),
            ("anonymize_attackers", attacked),
        ):
            for method in dict.fromkeys(cell.method for cell, _ in archives):
                counts = [count for cell, count in archives if cell.method == method]
                yield self._row(rule, method, len(counts), sum(counts), "images")

    def _attacks(self) -> Iterator[Work]:
        settings = self.parameters.attacks
        recovered = matrix.select_by_protocol(self.parameters, self.cells, "recovery")
        attacked = matrix.select_matching(self.cells, settings.cells)
        limits = [self.parameters.recovery.of(cell.method, cell.variant).pictures for cell in recovered]
        tested = [
            min(most or self._tested(cell), self._tested(cell)) for cell, most in zip(recovered, limits, strict=True)
        ]
        yield self._row("recover", "", len(recovered), sum(tested), "images", "each with several keys")
        guesses = settings.guesses * sum(min(settings.pictures, self._tested(cell)) for cell in attacked)
        yield self._row("key_attacks", "", len(attacked), guesses, "images", "one a guessed key")
        cells, utility = self.attackers.cells, self.parameters.downstream_utility
        yield self._row("attack_results", "", len(cells), sum(map(self._tested, cells)), "images")
        steps = len(cells) * (utility.landmark_steps + utility.detector_steps)
        yield self._row("downstream_utility", "", len(cells), steps, "steps")

    def _measurements(self) -> Iterator[Work]:
        splits = (TEST, GALLERY, self.parameters.matrix.calibrate_on)
        originals = sum(images.get(split, 0) for images in self.images.values() for split in splits)
        yield self._row("measure_source", "", len(self.images), originals, "images")
        yield self._row("measure", "", len(self.cells), sum(map(self._tested, self.cells)), "images")
        yield self._row("evaluate", "", len(self.cells), len(self.cells), "cells")

    def _tested(self, cell: Cell) -> int:
        return self.images[cell.dataset].get(TEST, 0)

    def _count_people_images(self, group: str) -> int:
        """The images of a group of people, about: its share of the train split."""
        train = self.images[self.parameters.matrix.train_on].get("train", 0)
        return round(train * getattr(self.parameters.people, group))

    def _count_attacker_images(self, cell: Cell) -> int:
        """The images of their own people and of the gallery that the attackers of a cell anonymize: at most."""
        settings = self.parameters.informed.of(cell.method, cell.variant)
        images = self._count_people_images("attackers")
        gallery = self.images[cell.dataset].get(GALLERY, 0)
        return min(images, settings.people * settings.pictures or images) + min(gallery, settings.linked or gallery)


def count_steps(block: Settings) -> int:
    """The updates of a training: all values called ``steps`` in its block of the parameters, together."""

    def total(value: Any) -> int:
        if not isinstance(value, dict):
            return 0
        return sum(part if name == "steps" else total(part) for name, part in value.items())

    return total(block.model_dump())


def as_json(scale: str, gpu: str, work: list[Work]) -> str:
    """The plan with plain numbers: units, seconds of one unit, GPU hours (null where nothing was measured)."""
    return json.dumps(
        {"scale": scale, "gpu": gpu, "work": [asdict(row) | {"hours": row.hours} for row in work]}, indent=1
    )
