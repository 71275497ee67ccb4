"""The cost of anonymizing, and of the attacks on it: recovery, and what needs no training."""

import itertools
from collections.abc import Callable, Iterator

from masquerade.core import discovery
from masquerade.core.images import FaceArchive, Faces
from masquerade.methods import Method
from masquerade.params import blocks
from masquerade.params.matrix import Cell
from masquerade.pipeline import recovery
from masquerade.pipeline.costs.builder import Builder
from masquerade.pipeline.costs.meta import Cost
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.trainings import precision
from masquerade.pipeline.costs.workload import Workload


def anonymized(workload: Workload, builder: Builder) -> Iterator[Step]:
    """Every picture of every archive of every cell, anonymized once."""
    batch = FaceArchive(builder.archive).load("test")
    costs: dict[tuple[str, str], Cost] = {}
    reasons: dict[str, str] = {}
    for method, variant in dict.fromkeys((cell.method, cell.variant) for cell in workload.cells):
        costs[method, variant], reason = _anonymized(builder, method, variant, batch)
        reasons[method] = reasons.get(method) or reason
    for rule, archives in workload.picture_sets():
        for method in dict.fromkeys(cell.method for cell, _ in archives):
            counts = [(cell, count) for cell, count in archives if cell.method == method]
            yield Step(
                rule, method, len(counts), sum(count for _, count in counts), "pictures",
                round(sum(costs[method, cell.variant].flops / len(batch) * count for cell, count in counts)),
                max(costs[method, cell.variant].peak for cell, _ in counts),
                sum(workload.png[cell.dataset] * count for cell, count in counts),
                precision=_precision(workload, method), note=reasons[method],
            )  # fmt: skip


def _precision(workload: Workload, method: str) -> str:
    """That of an optimization. In a deterministic process frozen networks compute in 32 bits."""
    set_to = precision(workload.parameters.methods[method].params)
    return "float32" if set_to and workload.parameters.compute.deterministic else set_to


def _anonymized(builder: Builder, method: str, variant: str, batch: Faces) -> tuple[Cost, str]:
    cls = discovery.load("methods", method)
    if not (cls.needs or cls.capabilities.trains):
        return Cost(), "no network"

    def work() -> None:
        anonymizer, keys = builder.method(method, variant), cls.capabilities.keys
        anonymizer.observe([batch])
        anonymizer.anonymize(batch, 0, [keys.experiment(0)] * len(batch) if keys else None)

    return builder.counted(f"{method}/{variant}", work)


def recovered(workload: Workload, builder: Builder) -> tuple[list[Step], dict[Cell, int]]:
    """The attempts to recover the source pictures; and cell -> number of pictures of all attempts."""
    batch = FaceArchive(builder.archive).load("test")
    pictures: dict[Cell, int] = {}
    counted: dict[tuple[str, str], tuple[int, Cost, str]] = {}
    for cell in workload.matching("recovery"):
        pair = cell.method, cell.variant
        settings = workload.parameters.recovery.of(*pair)
        if pair not in counted:
            made: dict = {}

            def work(
                pair: tuple[str, str] = pair, made: dict = made, settings: blocks.RecoverySettings = settings
            ) -> None:
                made.update(recovery.tries(batch, batch, builder.method(*pair), 0, settings))

            cost, reason = builder.counted(f"recovery of {'/'.join(pair)}", work)
            counted[pair] = len(made), cost, reason
        number = min(settings.pictures or workload.test(cell.dataset), workload.test(cell.dataset))
        pictures[cell] = number * counted[pair][0]
    steps = []
    for pair, (times, cost, reason) in counted.items():
        cells = [cell for cell in pictures if (cell.method, cell.variant) == pair]
        total = sum(pictures[cell] for cell in cells)
        each = cost.flops / len(batch) / max(1, times)
        disk = sum(pictures[cell] * workload.png[cell.dataset] for cell in cells)
        steps.append(Step("recover", "/".join(pair), len(cells), total, "pictures", round(each * total), cost.peak,
                          disk, note=reason))  # fmt: skip
    return steps, pictures


def attacked(workload: Workload, builder: Builder) -> Iterator[Step]:
    """Recoveries with guessed keys, each measured by the judge of the block ``attacks``."""
    batch = FaceArchive(builder.archive).load("test")
    settings, all_cells = workload.parameters.attacks, workload.matching("attacks")
    for method, variant in dict.fromkeys((cell.method, cell.variant) for cell in all_cells):
        guess, what = _guess(builder, method, variant, settings.judge, batch), f"attacks on {method}"
        first, reason = builder.counted(what, guess)
        further, _ = builder.counted(what, guess)  # the method remembers what it read off the pictures
        cells = [cell for cell in all_cells if (cell.method, cell.variant) == (method, variant)]
        attacked = sum(min(settings.pictures, workload.test(cell.dataset)) for cell in cells)
        flops = (first.flops + (settings.guesses - 1) * further.flops) / len(batch) * attacked
        yield Step("key_attacks", f"{method}/{variant}", len(cells), attacked * settings.guesses, "pictures",
                   round(flops), first.peak, note=reason)  # fmt: skip


def _guess(builder: Builder, method: str, variant: str, judge: str, batch: Faces) -> Callable[[], object]:
    """One guess after the other: each call recovers the batch with another key, and the judge measures the result."""
    made: list[Method] = []
    numbers = itertools.count()

    def guess() -> None:
        if not made:
            made.append(builder.method(method, variant))
        keys = made[0].capabilities.keys
        assert keys is not None  # only methods with keys are attacked
        given = [keys.experiment(0, "guess", next(numbers))] * len(batch)
        builder.judge(judge).measure(made[0].recover(batch.images, given))

    return guess
