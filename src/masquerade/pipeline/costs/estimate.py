"""The plan of a scale: every step of the matrix, counted on one batch or training step, times how often it is done."""

from collections.abc import Callable, Iterator
from pathlib import Path

from masquerade.params.parameters import Parameters
from masquerade.pipeline.costs import anonymizations, attackers, measurements, pictures, trainings
from masquerade.pipeline.costs.builder import Builder
from masquerade.pipeline.costs.meta import MetaExecution
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.workload import Workload


class Estimate:
    """The cost estimate of one scale.

    ``folder``: an empty folder. ``root``: the repository with weights/; archives that are built there give their sizes.
    ``progress``: called with the name of what is counted next.
    """

    def __init__(
        self, parameters: Parameters, folder: Path, root: Path, progress: Callable[[str], None] = lambda _: None
    ):
        self.parameters = parameters
        self.workload = Workload(parameters, root)
        self.meta = MetaExecution()
        self.builder = Builder(parameters, self.meta, folder, root, progress)

    def steps(self) -> list[Step]:
        """Every step, in the order of the pipeline."""
        work = self.workload, self.builder
        pictures.write(self.builder.archive, self.parameters.image.size, self.parameters.measure.batch)
        with self.meta:
            steps = [*trainings.backbones(*work), *trainings.codes(*work), *trainings.methods(*work)]
            steps += anonymizations.anonymized(*work)
            recoveries, attempts = anonymizations.recovered(*work)
            steps += [*recoveries, *anonymizations.attacked(*work), *measurements.attributes(*work)]
            steps += [*attackers.trained(*work), *attackers.attacked(*work), *attackers.twins(*work)]
            judged = {block: measurements.judges(*work, block) for block in ("measure", "target", "recovery")}
        measured = measurements.measured(self.workload, judged, attempts)
        return [*self.data(), *steps, *measured, *self._rest()]

    def data(self) -> Iterator[Step]:
        """The archive of each dataset."""
        for name, splits in self.workload.faces.items():
            total = sum(splits.values())
            note = self.workload.notes.get(name, "")
            disk = total * pictures.png_bytes(self.parameters, name, masks=True)
            yield Step("data", name, 1, total, "pictures", disk=disk, note=note)

    def _rest(self) -> Iterator[Step]:
        jobs = len(self.workload.cells) + len(self.workload.imported)
        yield Step("metrics", "", jobs, jobs, "cells", note="seconds each; tables, figures and the page are not listed")
