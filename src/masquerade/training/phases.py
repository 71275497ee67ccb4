"""Several tasks, one after another, as one task of the training loop."""

from collections.abc import Mapping

from torch import nn

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

    def step(self, step: int) -> dict[str, float]:
        """One update of the phase to which the step belongs. Returns its losses."""
        for steps, task in self.phases.values():
            if step < steps:
                return task.step(step)
            step -= steps
        raise IndexError("no phase is left")
