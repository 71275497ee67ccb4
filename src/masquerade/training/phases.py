"""Several tasks, one after another, as one task of the training loop."""

from collections.abc import Hashable, Mapping

from torch import nn

from masquerade.core import execution
from masquerade.training.loop import Kept, Task


class Phases:
    """``phases``: name -> number of steps and task. The steps of each task start at 0.

    ``shared``: modules to keep beside those of the tasks. A module of several tasks is kept once.
    """

    def __init__(self, phases: Mapping[str, tuple[int, Task]], shared: Mapping[str, nn.Module] | None = None):
        self.phases = dict(phases)
        self.steps = sum(steps for steps, _ in phases.values())
        self.tasks = [task for _, task in phases.values()]
        self.modules = dict(shared or {})
        self.optimizers: dict[str, Kept] = {}
        for name, (_, task) in phases.items():
            known = {id(module) for module in self.modules.values()}
            self.modules |= {f"{name}.{key}": part for key, part in task.modules.items() if id(part) not in known}
            self.optimizers |= {f"{name}.{key}": part for key, part in task.optimizers.items()}

    def _at(self, step: int) -> tuple[str, Task, int]:
        """The name of the phase of a step, its task, and the number of the step in it."""
        for name, (steps, task) in self.phases.items():
            if step < steps:
                return name, task, step
            step -= steps
        raise IndexError("no phase is left")

    def kind(self, step: int) -> Hashable:
        """Steps of one kind do the same computations."""
        name, task, own = self._at(step)
        return name, getattr(task, "kind", execution.alike)(own)

    def step(self, step: int) -> dict[str, float]:
        """One update of the phase to which the step belongs. Returns its losses."""
        _, task, own = self._at(step)
        return task.step(own)
