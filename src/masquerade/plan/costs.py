"""What every step of the matrix costs: counted on one batch or one training step of its own code, times how often."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np

from masquerade import discovery, matrix, params, recovery
from masquerade.images import FaceArchive, Faces
from masquerade.matrix import Cell
from masquerade.methods import Method, Resources, TrainingJob
from masquerade.params import AttributeSettings, Parameters
from masquerade.plan import pictures
from masquerade.plan.pretence import Bill, Pretence
from masquerade.settings import Settings

logger = logging.getLogger(__name__)

SHOWN = 2
"""Pictures that a judge is shown: it looks at each alone, or at a few at a time."""


@dataclass(frozen=True)
class Step:
    """One row of the plan: all jobs of a rule that do the same."""

    rule: str
    name: str
    jobs: int
    units: int
    """How many training steps or pictures in all jobs."""
    unit: str
    flops: int = 0
    """Of all jobs."""
    peak: int = 0
    """Bytes of all tensors of one job at the moment when there are most."""
    disk: int = 0
    """Bytes that all jobs leave."""
    processor: float = 0.0
    """Seconds of one processor core, of what is no PyTorch network; of all jobs."""
    note: str = ""


class Costs:
    """The plan of one scale. ``place``: an empty folder; ``root``: the repository, whose archives tell their sizes."""

    def __init__(self, parameters: Parameters, place: Path, root: Path):
        self.parameters, self.place, self.root = parameters, place, root
        cells = [cell for cell in matrix.cells(parameters) if cell.runnable]
        self.imported = [cell for cell in cells if cell.method in parameters.imported]
        self.cells = [cell for cell in cells if cell.method not in parameters.imported]
        self.notes: dict[str, str] = {}
        self.archive = place / "faces.zip"

    def steps(self) -> list[Step]:
        """Every step, in the order of the pipeline."""
        pictures.write(self.archive, self.parameters.image.size, self.parameters.measure.batch)
        with Pretence() as self.pretence:
            found = [*self._backbones(), *self._codes(), *self._trainings(), *self._anonymizations()]
            found += [*self._attempts(), *self._attributes()]
            judged = [self._judged("measure"), self._judged("recovery")]
        return [*self._data(), *found, *self._measurements(*judged), *self._rest()]

    # How many pictures there are, and what one takes on disk

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        names = sorted({cell.dataset for cell in self.cells} | {self.parameters.matrix.train_on})
        found = {}
        for name in names:
            built = self.root / f"data/{self.parameters.scale}/faces/{name}.parquet"
            known = pictures.count(self.parameters, name, built)
            if known is None:
                self.notes[name] = "nobody knows how many faces before the archive is built: none are counted"
            found[name] = known or {}
        return found

    def test(self, dataset: str) -> int:
        """Pictures of a test split."""
        return self.counts[dataset].get("test", 0)

    @property
    def train(self) -> int:
        """Pictures that trainings see."""
        return self.counts[self.parameters.matrix.train_on].get("train", 0)

    @cached_property
    def png(self) -> dict[str, int]:
        return {name: pictures.png_bytes(self.parameters, name) for name in self.counts}

    # Rows

    def _data(self) -> Iterable[Step]:
        for name, splits in self.counts.items():
            total = sum(splits.values())
            note = self.notes.get(name, "")
            yield Step("data", name, 1, total, "pictures", disk=total * self.png[name], note=note)

    def _backbones(self) -> Iterable[Step]:
        for name in self._ordered(self.parameters.backbones, "backbones"):
            backbone = discovery.load("backbones", name)(self.parameters.backbones[name])
            checkpoint = self._path(name)
            job = self._job(checkpoint, backbone.needs, seed=self.parameters.data_seed)
            bill, why = self._tried(lambda backbone=backbone, job=job: backbone.train(job))
            if backbone.published:
                bill, why = Bill(), why or f"published: {backbone.published.name}"
            yield self._training("backbone", name, 1, bill, checkpoint, why)

    def _codes(self) -> Iterable[Step]:
        from masquerade.latent import codes, fakes
        from masquerade.latent.world import BATCH, World

        able = {cell.method: discovery.load("methods", cell.method).capabilities for cell in self.cells}
        backbones = {name: self._path(name) for name in ("generator", "inversion", "semantics")}
        seed, asked = self.parameters.data_seed, self.parameters.fakes
        if any(one.fakes for one in able.values()):
            few, file = 2 * BATCH, self._path("fakes")
            worlds = {name: backbones[name] for name in ("generator", "semantics")}
            bill, why = self._tried(lambda: fakes.write(World(worlds), file, few, asked.psi, seed))
            share = asked.count / few
            yield Step("fakes", "", 1, asked.count, "pictures", round(bill.flops * share), bill.peak,
                       self._size(file, share), note=why)  # fmt: skip
        datasets = sorted({cell.dataset for cell in self.cells if able[cell.method].latents})
        if datasets:
            archive, file = FaceArchive(self.archive), self._path("latents")
            bill, why = self._tried(lambda: codes.write(World(backbones), archive, file))
            for name in datasets:
                total = sum(self.counts[name].values())
                share = total / len(archive)
                yield Step("latents", name, 1, total, "pictures", round(bill.flops * share), bill.peak,
                           self._size(file, share), note=why)  # fmt: skip

    def _trainings(self) -> Iterable[Step]:
        trained = {cell.method: discovery.load("methods", cell.method) for cell in self.cells}
        trained = {name: cls for name, cls in trained.items() if cls.capabilities.trains}
        for name in sorted(trained, key=lambda name: bool(trained[name].kin)):
            cls, knobs = trained[name], self.parameters.methods[name].params
            mine = [cell for cell in self.cells if cell.method == name]
            ablated = self.parameters.ablations(name)
            kin = self._path(f"method.{cls.kin}") if cls.kin in trained else None
            # an ablation is not made without the training that it starts from
            jobs = len({cell.seed for cell in mine})
            yield self._trained("method", name, cls, knobs, jobs, self._path(f"method.{name}"), kin)
            for variant in dict.fromkeys(cell.variant for cell in mine if cell.variant in ablated):
                jobs = len({cell.seed for cell in mine if cell.variant == variant})
                altered = params.trained_with(cls, knobs.model_dump(mode="json"), ablated[variant])
                checkpoint = self._path(f"method.{name}.{variant}")
                yield self._trained("ablation", f"{name}/{variant}", cls, altered, jobs, checkpoint,
                                    self._path(f"method.{name}"))  # fmt: skip

    def _trained(
        self, rule: str, name: str, cls: type[Method], knobs: Settings, jobs: int, checkpoint: Path, base: Path | None
    ) -> Step:
        job = self._job(checkpoint, cls.needs, base if base is not None and base.is_file() else None)
        bill, why = self._tried(lambda: cls.train(knobs, job))
        return self._training(rule, name, jobs, bill, checkpoint, why)

    def _training(self, rule: str, name: str, jobs: int, bill: Bill, checkpoint: Path, why: str) -> Step:
        steps = sum(count for count, _ in bill.kinds)
        # what is done before the first step is done with every picture
        flops = jobs * round(bill.repeated + bill.once * self.train / pictures.TRAIN)
        return Step(rule, name, jobs, jobs * steps, "steps", flops, bill.peak, jobs * self._size(checkpoint), note=why)

    def _anonymizations(self) -> Iterable[Step]:
        batch = FaceArchive(self.archive).load("test")
        self._bills: dict[tuple[str, str], Bill] = {}
        whys: dict[str, str] = {}
        for method, variant in dict.fromkeys((cell.method, cell.variant) for cell in self.cells):
            self._bills[method, variant], why = self._anonymized(method, variant, batch)
            whys[method] = whys.get(method) or why
        for rule, cells, pictures_of in self._sets():
            for method in dict.fromkeys(cell.method for cell in cells):
                mine = [cell for cell in cells if cell.method == method]
                numbers = [pictures_of(cell) for cell in mine]
                bills = [self._bills[method, cell.variant] for cell in mine]
                yield Step(
                    rule, method, len(mine), sum(numbers), "pictures",
                    round(sum(bill.flops / len(batch) * count for bill, count in zip(bills, numbers, strict=True))),
                    max(bill.peak for bill in bills),
                    sum(self.png[cell.dataset] * count for cell, count in zip(mine, numbers, strict=True)),
                    note=whys[method],
                )  # fmt: skip

    def _sets(self) -> list[tuple[str, list[Cell], Callable[[Cell], int]]]:
        most = self.parameters.attributes.train_pictures or self.train
        ours = [cell for cell in self._matching("attributes") if cell.dataset == self.parameters.matrix.train_on]
        return [
            ("anonymize", self.cells, lambda cell: self.test(cell.dataset)),
            ("anonymize_train", ours, lambda _: min(most, self.train)),
        ]

    def _anonymized(self, method: str, variant: str, batch: Faces) -> tuple[Bill, str]:
        cls = discovery.load("methods", method)
        if not (cls.needs or cls.capabilities.trains):
            return Bill(), "no network"

        def work() -> None:
            made, key = self._method(method, variant), cls.capabilities.keys
            made.observe([batch])
            made.anonymize(batch, 0, key.experiment(0) if key else None)

        return self._tried(work)

    def _attempts(self) -> Iterable[Step]:
        batch = FaceArchive(self.archive).load("test")
        settings = recovery.RecoverySettings(
            **self.parameters.recovery.model_dump(include=set(recovery.RecoverySettings.model_fields))
        )
        self.tries: dict[Cell, int] = {}
        found: dict[tuple[str, str], tuple[int, Bill, str]] = {}
        for cell in self._matching("recovery"):
            pair = cell.method, cell.variant
            if pair not in found:
                made: dict = {}

                def work(pair: tuple[str, str] = pair, made: dict = made) -> None:
                    made.update(recovery.tries(batch, batch, self._method(*pair), 0, settings))

                bill, why = self._tried(work)
                found[pair] = len(made), bill, why
            number = min(settings.pictures or self.test(cell.dataset), self.test(cell.dataset))
            self.tries[cell] = number * found[pair][0]
        for pair, (times, bill, why) in found.items():
            mine = [cell for cell in self.tries if (cell.method, cell.variant) == pair]
            total = sum(self.tries[cell] for cell in mine)
            each = bill.flops / len(batch) / max(1, times)
            yield Step("recover", "/".join(pair), len(mine), total, "pictures", round(each * total), bill.peak,
                       sum(self.tries[cell] * self.png[cell.dataset] for cell in mine), note=why)  # fmt: skip
        yield from self._guesses(batch)

    def _guesses(self, batch: Faces) -> Iterable[Step]:
        asked = self.parameters.guessing
        for cell in self._matching("guessing"):

            def work(cell: Cell = cell) -> None:
                method = self._method(cell.method, cell.variant)
                key = method.capabilities.keys.experiment(0)
                self._judge(asked.judge).measure(method.recover(batch.images, key))

            bill, why = self._tried(work)
            total = min(asked.pictures, self.test(cell.dataset)) * asked.guesses
            yield Step("guess", f"{cell.method}/{cell.variant} seed {cell.seed}", 1, total, "pictures",
                       round(bill.flops / len(batch) * total), bill.peak, note=why)  # fmt: skip

    def _attributes(self) -> Iterable[Step]:
        from masquerade.attributes import protocol

        cells, asked = self._matching("attributes"), self.parameters.attributes
        if not cells:
            return
        archive, found = FaceArchive(self.archive), {}
        settings = AttributeSettings(**asked.model_dump(include=set(AttributeSettings.model_fields)))
        most = min(asked.labeller_pictures or self.train, self.train)

        def label() -> None:
            found["labels"], _ = protocol.pseudo_labels(archive, {"plan": archive}, settings, 0)

        bill, why = self._tried(label)
        yield Step("pseudo_labels", "", 1, most, "pictures", round(bill.flops * most / pictures.TRAIN), bill.peak,
                   note=why)  # fmt: skip
        if "labels" not in found:
            return
        pseudo = found["labels"][found["labels"]["dataset"] == "plan"].drop_duplicates(["labels", "id", "attribute"])
        for own in (True, False):
            mine = [cell for cell in cells if (cell.dataset == self.parameters.matrix.train_on) == own]
            if mine:
                rows = len(archive.select("train" if own else "test"))
                bill, why = self._tried(lambda own=own: protocol.evaluate(archive, archive, own, pseudo, settings, 0))
                numbers = [min(asked.train_pictures or self.train, self.train) if own else self.test(cell.dataset)
                           for cell in mine]  # fmt: skip
                yield Step("attributes", "its train split" if own else "its test split", len(mine), sum(numbers),
                           "pictures", round(bill.flops / rows * sum(numbers)), bill.peak, note=why)  # fmt: skip

    def _judged(self, block: str) -> dict[str, tuple[Bill, float, str]]:
        """What each judge of a block costs for SHOWN pictures: a bill, seconds of a core without networks, a note."""
        few = FaceArchive(self.archive).load("test").images[:SHOWN]
        found = {}
        for name in getattr(self.parameters, block).judges:
            ready: dict = {}

            def load(name: str = name, ready: dict = ready) -> None:
                ready["judge"] = self._judge(name)

            def work(ready: dict = ready) -> None:
                ready["judge"].measure(few, few)

            bill, why = self._tried(load)
            began = time.process_time()
            if ready:
                bill, why = self._tried(work)
            found[name] = bill, 0.0 if bill.flops or why else time.process_time() - began, why
        return found

    def _measurements(self, measured: dict, recovered: dict) -> Iterable[Step]:
        splits = (self.parameters.matrix.calibrate_on, "test")
        source = sum(self.counts[name].get(split, 0) for name in self.counts for split in splits)
        derived = sum(self.test(cell.dataset) for cell in [*self.cells, *self.imported] if cell.dataset in self.counts)
        jobs = len(self.counts), len(self.cells) + len(self.imported), len(self.tries)
        rows = (("measure_source", measured, jobs[0], source), ("measure", measured, jobs[1], derived),
                ("measure_attempts", recovered, jobs[2], sum(self.tries.values())))  # fmt: skip
        for rule, judges, count, total in rows:
            if count:
                whys = [f"{name}: {why}" for name, (_, _, why) in judges.items() if why]
                yield Step(
                    rule, "", count, total, "pictures",
                    round(sum(bill.flops for bill, _, _ in judges.values()) * total / SHOWN),
                    max((bill.peak for bill, _, _ in judges.values()), default=0),
                    total * sum(self._row(name) for name in judges),
                    sum(seconds for _, seconds, _ in judges.values()) * total / SHOWN,
                    "; ".join(whys),
                )  # fmt: skip

    def _row(self, judge: str) -> int:
        """Bytes of what a judge measures of a picture, as it is kept, not compressed."""
        return sum(4 * prod(shape) for shape in discovery.load("judges", judge).quantities.values())

    def _rest(self) -> Iterable[Step]:
        jobs = len(self.cells) + len(self.imported)
        yield Step("metrics", "", jobs, jobs, "cells", note="seconds each; tables, figures and the page are not listed")

    # The pipeline's own objects

    def _path(self, name: str) -> Path:
        return self.place / f"{name}.safetensors"

    def _size(self, checkpoint: Path, share: float = 1.0) -> int:
        return round(self.pretence.size(checkpoint) * share) if checkpoint.is_file() else 0

    def _job(self, checkpoint: Path, needs: Iterable[str], base: Path | None = None, seed: int = 0) -> TrainingJob:
        return TrainingJob(
            faces=self.archive, backbones={name: self._path(name) for name in needs}, checkpoint=checkpoint,
            state=self.place / "state.pt", seed=seed, threads=1, log=lambda *_: None, picture=lambda *_: None, base=base,
        )  # fmt: skip

    def _method(self, name: str, variant: str) -> Method:
        cls, block = discovery.load("methods", name), self.parameters.methods[name]
        altered = self.parameters.ablations(name).get(variant)
        knobs = params.trained_with(cls, block.params.model_dump(mode="json"), altered)
        checkpoint = self._path(f"method.{name}.{variant}" if altered else f"method.{name}")
        return cls(
            knobs, block.variants[variant],
            Resources(checkpoint, {one: self._path(one) for one in cls.needs}, FaceArchive(self.archive),
                      self._path("fakes"), self._path("latents")),
        )  # fmt: skip

    def _judge(self, name: str):
        cls = discovery.load("judges", name)
        return cls(self.parameters.judges[name], {one: self._path(one) for one in cls.needs})

    def _matching(self, block: str) -> list[Cell]:
        return matrix.matching(self.cells, getattr(self.parameters, block).cells)

    def _ordered(self, names: Iterable[str], room: str) -> list[str]:
        """Names, those that others need before them."""
        ordered: list[str] = []

        def put(name: str) -> None:
            for needed in discovery.load(room, name).needs:
                put(needed)
            if name not in ordered:
                ordered.append(name)

        for name in names:
            put(name)
        return [name for name in ordered if name in set(names)]

    def _tried(self, work: Callable[[], object]) -> tuple[Bill, str]:
        """What ``work`` costs; a bill of nothing, and why, where it cannot run without numbers or files."""
        try:
            with self.pretence.counted() as bill:
                work()
        except Exception as error:  # noqa: BLE001 - anybody's code may fail on tensors without numbers: the row says so
            logger.debug("not counted", exc_info=True)
            return Bill(), f"not counted: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        return bill, ""


def array_bytes(arrays: Iterable[np.ndarray]) -> int:
    return sum(array.nbytes for array in arrays)
