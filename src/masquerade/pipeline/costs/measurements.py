"""The cost of evaluation: attribute classifiers trained on anonymized pictures, and the judges."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.params.blocks import AttributeSettings
from masquerade.params.matrix import Cell
from masquerade.pipeline.costs import pictures
from masquerade.pipeline.costs.builder import Builder
from masquerade.pipeline.costs.meta import Cost
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.workload import Workload

JUDGED = 2
"""Pictures given to a judge to count its cost. A judge measures each picture alone, or a few at a time."""


@dataclass(frozen=True)
class JudgeCost:
    """What a judge costs for JUDGED pictures."""

    cost: Cost
    seconds: float
    """Of one processor core, for a judge without a PyTorch network."""
    reason: str
    """Why it is not counted; else ''."""


def attributes(workload: Workload, builder: Builder) -> Iterator[Step]:
    """Pseudo-labels, and the classifiers that are trained for each cell of the block ``attributes``."""
    from masquerade.pipeline.attributes import protocol

    all_cells, block = workload.matching("attributes"), workload.parameters.attributes
    if not all_cells:
        return
    archive, results = FaceArchive(builder.archive), {}
    settings = AttributeSettings(**block.model_dump(include=set(AttributeSettings.model_fields)))
    known = workload.learned_by("methods")
    most = min(block.labeler_pictures or known, known)

    def label() -> None:
        results["labels"], _ = protocol.pseudo_labels(archive, {"plan": archive}, settings, 0)

    cost, reason = builder.counted("pseudo-labels", label)
    yield Step("pseudo_labels", "", 1, most, "pictures", round(cost.flops * most / pictures.TRAIN), cost.peak,
               note=reason)  # fmt: skip
    if "labels" not in results:
        return
    labels = results["labels"]
    labels = labels[labels["dataset"] == "plan"].drop_duplicates(["labels", "id", "attribute"])
    for own in (True, False):
        cells = [cell for cell in all_cells if (cell.dataset == workload.parameters.matrix.train_on) == own]
        if cells:
            rows = len(archive.select("train" if own else "test"))
            cost, reason = builder.counted(
                "attributes", lambda own=own: protocol.evaluate(archive, archive, own, labels, settings, 0)
            )
            train = min(block.train_pictures or known, known)
            total = sum(train if own else workload.test(cell.dataset) for cell in cells)
            yield Step("attributes", "its train split" if own else "its test split", len(cells), total, "pictures",
                       round(cost.flops / rows * total), cost.peak, note=reason)  # fmt: skip


def judges(workload: Workload, builder: Builder, block: str) -> dict[str, JudgeCost]:
    """The cost of each judge of a block of the parameters (``measure``, ``target`` or ``recovery``)."""
    few = FaceArchive(builder.archive).load("test").images[:JUDGED]
    costs = {}
    for name in getattr(workload.parameters, block).judges:
        loaded: dict = {}

        def load(name: str = name, loaded: dict = loaded) -> None:
            loaded["judge"] = builder.judge(name)

        def work(loaded: dict = loaded) -> None:
            loaded["judge"].measure(few, few)

        cost, reason = builder.counted(name, load)
        if loaded:
            cost, reason = builder.counted(name, work)
        seconds = 0.0
        if loaded and not (cost.flops or reason):
            began = time.process_time()  # of a second run, because the first one also prepares the judge
            work()
            seconds = time.process_time() - began
        costs[name] = JudgeCost(cost, seconds, reason)
    return costs


def measured(
    workload: Workload, judged: Mapping[str, Mapping[str, JudgeCost]], attempts: Mapping[Cell, int]
) -> Iterator[Step]:
    """Measurements of source pictures, of anonymized pictures, and of attempts to recover the source.

    ``judged``: block of the parameters -> its `judges`. ``attempts``: cell -> number of pictures.
    """
    cells = [*workload.cells, *workload.imported]
    splits = (workload.parameters.matrix.calibrate_on, "test")
    source = sum(workload.faces[name].get(split, 0) for name in workload.faces for split in splits)
    known = workload.learned_by("methods")
    target = min(workload.parameters.target.pictures or known, known)
    derived = sum(workload.test(cell.dataset) for cell in cells if cell.dataset in workload.faces)
    rows = (
        ("measure_source", judged["measure"], len(workload.faces), source),
        ("measure_target", judged["target"], 1, target),
        ("measure", judged["measure"], len(cells), derived),
        ("measure_attempts", judged["recovery"], len(attempts), sum(attempts.values())),
    )
    for rule, costs, jobs, total in rows:
        if jobs:
            yield Step(
                rule, "", jobs, total, "pictures",
                round(sum(judge.cost.flops for judge in costs.values()) * total / JUDGED),
                max((judge.cost.peak for judge in costs.values()), default=0),
                total * sum(map(_bytes, costs)),
                sum(judge.seconds for judge in costs.values()) * total / JUDGED,
                "; ".join(f"{name}: {judge.reason}" for name, judge in costs.items() if judge.reason),
            )  # fmt: skip


def _bytes(judge: str) -> int:
    """Bytes of what a judge measures of one picture, without compression."""
    return sum(4 * prod(shape) for shape in discovery.load("judges", judge).quantities.values())
