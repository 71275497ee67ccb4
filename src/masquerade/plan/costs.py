"""What every step of the matrix costs: counted on one batch or one training step of its own code, times how often."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from masquerade import discovery, matrix, params, recovery
from masquerade.images import FaceArchive, Faces
from masquerade.matrix import Cell
from masquerade.methods import Method
from masquerade.params import AttributeSettings, Parameters
from masquerade.plan import pictures
from masquerade.plan.pipeline import Pipeline, ordered
from masquerade.plan.pretence import Bill, Pretence
from masquerade.settings import Settings

SHOWN = 2
"""Pictures that a judge is shown: it looks at each alone, or at a few at a time."""


DRAWN = 512
"""Fakes that are drawn: as many as it takes to make groups of them."""


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

    def __init__(
        self, parameters: Parameters, place: Path, root: Path, progress: Callable[[str], None] = lambda _: None
    ):
        self.parameters, self.root = parameters, root
        self.pretence = Pretence()
        self.pipeline = Pipeline(parameters, self.pretence, place, progress)
        cells = [cell for cell in matrix.cells(parameters, as_if_placed=True) if cell.runnable]
        self.imported = [cell for cell in cells if cell.method in parameters.imported]
        self.cells = [cell for cell in cells if cell.method not in parameters.imported]
        self.notes: dict[str, str] = {}

    def steps(self) -> list[Step]:
        """Every step, in the order of the pipeline."""
        pictures.write(self.pipeline.archive, self.parameters.image.size, self.parameters.measure.batch)
        with self.pretence:
            found = [*self._backbones(), *self._codes(), *self._trainings(), *self._anonymizations()]
            found += [*self._attempts(), *self._attributes()]
            judged = [self._judged("measure"), self._judged("recovery")]
        return [*self._data(), *found, *self._measurements(*judged), *self._rest()]

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        names = sorted({cell.dataset for cell in self.cells} | {self.parameters.matrix.train_on})
        found = {}
        for name in names:
            built = self.root / f"data/{self.parameters.scale}/faces/{name}.parquet"
            known = pictures.count(self.parameters, name, built)
            if matrix.unavailable(self.parameters, name):
                self.notes[name] = "not placed: counted as if it were here"
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

    def _data(self) -> Iterable[Step]:
        for name, splits in self.counts.items():
            total = sum(splits.values())
            note = self.notes.get(name, "")
            disk = total * pictures.png_bytes(self.parameters, name, masks=True)
            yield Step("data", name, 1, total, "pictures", disk=disk, note=note)

    def _backbones(self) -> Iterable[Step]:
        for name in ordered(self.parameters.backbones, "backbones"):
            backbone = discovery.load("backbones", name)(self.parameters.backbones[name])
            checkpoint = self.pipeline.path(name)
            job = self.pipeline.job(checkpoint, backbone.needs, seed=self.parameters.data_seed)
            bill, why = self.pipeline.counted(name, lambda backbone=backbone, job=job: backbone.train(job))
            if backbone.published:
                bill, why = Bill(), why or f"published: {backbone.published.name}"
            yield self._training("backbone", name, 1, bill, checkpoint, why)

    def _codes(self) -> Iterable[Step]:
        from masquerade.latent import codes, fakes
        from masquerade.latent.world import World

        able = {cell.method: discovery.load("methods", cell.method).capabilities for cell in self.cells}
        backbones = {name: self.pipeline.path(name) for name in ("generator", "inversion", "semantics")}
        seed, asked = self.parameters.data_seed, self.parameters.fakes
        if any(one.fakes for one in able.values()):
            few, file = min(asked.count, DRAWN), self.pipeline.path("fakes")
            worlds = {name: backbones[name] for name in ("generator", "semantics")}
            bill, why = self.pipeline.counted("fakes", lambda: fakes.write(World(worlds), file, few, asked.psi, seed))
            share = asked.count / few
            yield Step("fakes", "", 1, asked.count, "pictures", round(bill.flops * share), bill.peak,
                       self.pipeline.size(file, share), note=why)  # fmt: skip
        datasets = sorted({cell.dataset for cell in self.cells if able[cell.method].latents})
        if datasets:
            archive, file = FaceArchive(self.pipeline.archive), self.pipeline.path("latents")
            bill, why = self.pipeline.counted("latents", lambda: codes.write(World(backbones), archive, file))
            for name in datasets:
                total = sum(self.counts[name].values())
                share = total / len(archive)
                yield Step("latents", name, 1, total, "pictures", round(bill.flops * share), bill.peak,
                           self.pipeline.size(file, share), note=why)  # fmt: skip

    def _trainings(self) -> Iterable[Step]:
        trained = {cell.method: discovery.load("methods", cell.method) for cell in self.cells}
        trained = {name: cls for name, cls in trained.items() if cls.capabilities.trains}
        for name in sorted(trained, key=lambda name: bool(trained[name].kin)):
            cls, knobs = trained[name], self.parameters.methods[name].params
            mine = [cell for cell in self.cells if cell.method == name]
            ablated = self.parameters.ablations(name)
            kin = self.pipeline.path(f"method.{cls.kin}") if cls.kin in trained else None
            # an ablation is not made without the training that it starts from
            jobs = len({cell.seed for cell in mine})
            yield self._trained("method", name, cls, knobs, jobs, self.pipeline.path(f"method.{name}"), kin)
            for variant in dict.fromkeys(cell.variant for cell in mine if cell.variant in ablated):
                jobs = len({cell.seed for cell in mine if cell.variant == variant})
                altered = params.trained_with(cls, knobs.model_dump(mode="json"), ablated[variant])
                checkpoint = self.pipeline.path(f"method.{name}.{variant}")
                yield self._trained("ablation", f"{name}/{variant}", cls, altered, jobs, checkpoint,
                                    self.pipeline.path(f"method.{name}"))  # fmt: skip

    def _trained(
        self, rule: str, name: str, cls: type[Method], knobs: Settings, jobs: int, checkpoint: Path, base: Path | None
    ) -> Step:
        job = self.pipeline.job(checkpoint, cls.needs, base)
        bill, why = self.pipeline.counted(name, lambda: cls.train(knobs, job))
        return self._training(rule, name, jobs, bill, checkpoint, why)

    def _training(self, rule: str, name: str, jobs: int, bill: Bill, checkpoint: Path, why: str) -> Step:
        steps = sum(count for count, _ in bill.kinds)
        # what is done before the first step is done with every picture
        flops = jobs * round(bill.repeated + bill.once * self.train / pictures.TRAIN)
        tasks = self.parameters.compute.submission("training", name.partition("/")[0]).tasks
        shared = f"{tasks} processes share the batch, and most of the peak" if tasks > 1 and not why else ""
        disk = jobs * self.pipeline.size(checkpoint)
        return Step(rule, name, jobs, jobs * steps, "steps", flops, bill.peak, disk, note=why or shared)

    def _anonymizations(self) -> Iterable[Step]:
        batch = FaceArchive(self.pipeline.archive).load("test")
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
            made, key = self.pipeline.method(method, variant), cls.capabilities.keys
            made.observe([batch])
            made.anonymize(batch, 0, key.experiment(0) if key else None)

        return self.pipeline.counted(f"{method}/{variant}", work)

    def _attempts(self) -> Iterable[Step]:
        batch = FaceArchive(self.pipeline.archive).load("test")
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
                    made.update(recovery.tries(batch, batch, self.pipeline.method(*pair), 0, settings))

                bill, why = self.pipeline.counted(f"recovery of {'/'.join(pair)}", work)
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
        asked, cells = self.parameters.guessing, self._matching("guessing")
        for method, variant in dict.fromkeys((cell.method, cell.variant) for cell in cells):

            def work(name: str = method, variant: str = variant) -> None:
                made = self.pipeline.method(name, variant)
                key = made.capabilities.keys.experiment(0)
                self.pipeline.judge(asked.judge).measure(made.recover(batch.images, key))

            bill, why = self.pipeline.counted(f"guesses of {method}", work)
            mine = [cell for cell in cells if (cell.method, cell.variant) == (method, variant)]
            total = sum(min(asked.pictures, self.test(cell.dataset)) * asked.guesses for cell in mine)
            flops = round(bill.flops / len(batch) * total)
            yield Step("guess", f"{method}/{variant}", len(mine), total, "pictures", flops, bill.peak, note=why)

    def _attributes(self) -> Iterable[Step]:
        from masquerade.attributes import protocol

        cells, asked = self._matching("attributes"), self.parameters.attributes
        if not cells:
            return
        archive, found = FaceArchive(self.pipeline.archive), {}
        settings = AttributeSettings(**asked.model_dump(include=set(AttributeSettings.model_fields)))
        most = min(asked.labeller_pictures or self.train, self.train)

        def label() -> None:
            found["labels"], _ = protocol.pseudo_labels(archive, {"plan": archive}, settings, 0)

        bill, why = self.pipeline.counted("pseudo-labels", label)
        yield Step("pseudo_labels", "", 1, most, "pictures", round(bill.flops * most / pictures.TRAIN), bill.peak,
                   note=why)  # fmt: skip
        if "labels" not in found:
            return
        pseudo = found["labels"][found["labels"]["dataset"] == "plan"].drop_duplicates(["labels", "id", "attribute"])
        for own in (True, False):
            mine = [cell for cell in cells if (cell.dataset == self.parameters.matrix.train_on) == own]
            if mine:
                rows = len(archive.select("train" if own else "test"))
                bill, why = self.pipeline.counted(
                    "attributes", lambda own=own: protocol.evaluate(archive, archive, own, pseudo, settings, 0)
                )
                numbers = [min(asked.train_pictures or self.train, self.train) if own else self.test(cell.dataset)
                           for cell in mine]  # fmt: skip
                yield Step("attributes", "its train split" if own else "its test split", len(mine), sum(numbers),
                           "pictures", round(bill.flops / rows * sum(numbers)), bill.peak, note=why)  # fmt: skip

    def _judged(self, block: str) -> dict[str, tuple[Bill, float, str]]:
        """What each judge of a block costs for SHOWN pictures: a bill, seconds of a core without networks, a note."""
        few = FaceArchive(self.pipeline.archive).load("test").images[:SHOWN]
        found = {}
        for name in getattr(self.parameters, block).judges:
            ready: dict = {}

            def load(name: str = name, ready: dict = ready) -> None:
                ready["judge"] = self.pipeline.judge(name)

            def work(ready: dict = ready) -> None:
                ready["judge"].measure(few, few)

            bill, why = self.pipeline.counted(name, load)
            if ready:
                bill, why = self.pipeline.counted(name, work)
            seconds = 0.0
            if ready and not (bill.flops or why):
                began = time.process_time()  # the first time it also made itself ready
                work()
                seconds = time.process_time() - began
            found[name] = bill, seconds, why
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

    def _matching(self, block: str) -> list[Cell]:
        return matrix.matching(self.cells, getattr(self.parameters, block).cells)
