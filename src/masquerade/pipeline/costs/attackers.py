"""The cost of attackers who know the method, and of the utility twins, which learn from the same pictures."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from masquerade.attackers import Attacker
from masquerade.attackers.study.lessons import SEARCHED, Lesson, Pairs
from masquerade.backbones.landmarks.settings import LandmarksSettings
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, to_float
from masquerade.params.informed import InformedSettings
from masquerade.params.matrix import Cell
from masquerade.params.slices import Slice
from masquerade.pipeline import informed
from masquerade.pipeline.attacker_inputs import ONE, OWN
from masquerade.pipeline.costs import trainings
from masquerade.pipeline.costs.builder import Builder
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.workload import Workload

FEW = 2
"""People whose pictures are attacked to count the cost of a picture."""


def trained(workload: Workload, builder: Builder) -> Iterator[Step]:
    """The trainings of each attacker that learns: one for each cell, and several for some."""
    cells, numbers, pictures = workload.attackers.cells, Counter[str](), Counter[str]()
    if not cells:
        return
    lesson = _lesson(workload, builder)
    for cell in cells:
        for name in workload.attackers.trained(cell, "{attacker}"):
            numbers[name] += 1
            pictures[name] += workload.attackers_pictures(cell)
    for name, jobs in numbers.items():
        attacker = _attacker(builder, name)
        job = builder.job(builder.path(f"attacker.{name}"), attacker.needs(attacker.params))
        cost, reason = builder.counted(
            f"attacker {name}", lambda attacker=attacker, job=job: attacker.train(lesson, job)
        )
        yield trainings.step(workload, builder, "attacker", name, jobs, cost, job.checkpoint, reason,
                             pictures[name] / jobs, trainings.precision(attacker.params))  # fmt: skip


def attacked(workload: Workload, builder: Builder) -> Iterator[Step]:
    """The attacks on the tested pictures, and on those of held-out people. One row for all cells."""
    cells = workload.attackers.cells
    if not cells:
        return
    archive, lesson = FaceArchive(builder.archive), _lesson(workload, builder)
    scene = informed.scene(archive, archive, Lesson(_few(lesson.learn), _few(lesson.held_out), lesson.digest))
    scene = replace(scene, tested=_few(_changed(scene.tested)))
    few = len(scene.tested) + len(scene.lesson.held_out)
    settings, counted = workload.parameters.informed, {}
    params = Slice.of(workload.parameters, [f"judges.{name}" for name in settings.judges])
    backbones = {need: builder.path(need) for name in settings.judges for need in discovery.load("judges", name).needs}
    totals = {cell: workload.test(cell.dataset) + round(settings.held_out * workload.attackers_pictures(cell))
              for cell in cells}  # fmt: skip
    for attacks in dict.fromkeys(_attacks(workload, cell) for cell in cells):

        def work(attacks: tuple[str, ...] = attacks) -> None:
            made = [informed.Attack(_attacker(builder, name), 0, True) for name in attacks]
            clear = informed.recognizers(settings.judges, params, backbones)
            informed.attack(made, dict.fromkeys((OWN, ONE), scene), clear, settings.far)

        counted[attacks] = builder.counted(f"attacks by {', '.join(attacks)}", work)
    each = [counted[_attacks(workload, cell)] for cell in cells]
    flops = sum(cost.flops / few * totals[cell] for cell, (cost, _) in zip(cells, each, strict=True))
    yield Step("answers", "", len(cells), sum(totals.values()), "pictures", round(flops),
               max(cost.peak for cost, _ in each), processor=_seconds(workload, builder, scene.lesson, totals),
               note="; ".join(dict.fromkeys(reason for _, reason in each if reason)))  # fmt: skip


def twins(workload: Workload, builder: Builder) -> Iterator[Step]:
    """The two networks that learn from the pictures of each cell, and their test on clear pictures."""
    from masquerade.pipeline import twins

    cells, settings = workload.attackers.cells, workload.parameters.twins
    if not cells:
        return
    archive, state = FaceArchive(builder.archive), builder.folder / "state.pt"
    landmarks = workload.parameters.backbones["landmarks"]
    assert isinstance(landmarks, LandmarksSettings)
    cost, reason = builder.counted(
        "twins", lambda: twins.learn_and_test(archive, archive, landmarks, settings, state, 0, 1, lambda *_: None)
    )
    tested = sum(workload.test(cell.dataset) for cell in cells) / len(archive.select("test"))
    steps = len(cells) * (settings.landmark_steps + settings.detector_steps)
    flops = round(len(cells) * cost.repeated + tested * cost.once)
    yield Step("twins", "", len(cells), steps, "steps", flops, cost.peak, note=reason)


def _attacker(builder: Builder, name: str) -> Attacker:
    """An attacker with its checkpoint, if it uses one."""
    cls = discovery.load("attackers", name)
    params = builder.parameters.attackers[name]
    needs = {need: builder.path(need) for need in cls.needs(params)}
    return cls(params, needs, builder.path(f"attacker.{cls.trained_as or name}"))


def _attacks(workload: Workload, cell: Cell) -> tuple[str, ...]:
    """The attackers of a cell, each once for each of its trainings."""
    trainings = Counter(workload.attackers.trained(cell, "{attacker}"))
    return tuple(name for name in workload.attackers.of(cell) for _ in range(max(1, trainings[name])))


def _lesson(workload: Workload, builder: Builder) -> Lesson:
    """A lesson of the drawn faces. Their negatives stand for the anonymized pictures."""
    archive, block = FaceArchive(builder.archive), workload.parameters.informed
    settings = InformedSettings(**block.model_dump(include=set(InformedSettings.model_fields)))
    lesson = informed.lesson_of(archive, archive, settings.model_copy(update={"people": 0, "pictures": 0}))
    return replace(lesson, learn=_changed(lesson.learn), held_out=_changed(lesson.held_out))


def _changed(pairs: Pairs) -> Pairs:
    """Pairs of different pictures, because equal ones are embedded once."""
    return replace(pairs, anonymized=255 - pairs.clear)


def _few(pairs: Pairs) -> Pairs:
    """The pictures of the first FEW people."""
    return pairs.of(np.isin(pairs.people, np.unique(pairs.people)[:FEW]))


def _seconds(workload: Workload, builder: Builder, lesson: Lesson, pictures: Mapping[Cell, int]) -> float:
    """Seconds of one processor core for the filters, which are no networks: their search and their restorations."""
    seconds = 0.0
    for name in workload.parameters.attackers:
        attacker = _attacker(builder, name)
        if attacker.restores and not attacker.learns:
            attacked = [cell for cell in pictures if name in workload.attackers.of(cell)]
            search = _timed(lambda attacker=attacker: attacker.study(lesson)) * SEARCHED / len(lesson.learn)
            images = to_float(lesson.held_out.anonymized)
            each = _timed(lambda attacker=attacker, images=images: attacker.restore(images)) / len(images)
            seconds += len(attacked) * search + each * sum(pictures[cell] for cell in attacked)
    return seconds


def _timed(work: Callable[[], object]) -> float:
    """Seconds of the second call, because the first one also imports packages."""
    work()
    began = time.process_time()
    work()
    return time.process_time() - began
