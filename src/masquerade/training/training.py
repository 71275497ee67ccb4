"""One training, from a job to a checkpoint. A task (`loop.Task`) states what is learned."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.core import fingerprints, seeding
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.core.settings import Settings
from masquerade.training import checkpoints, loop
from masquerade.training.loop import Stateful, Task
from masquerade.training.settings import TrainingJob

Network = TypeVar("Network", bound=nn.Module)


class Training:
    """The training of a network with ``settings``: its faces, seed, loop, sample images and checkpoint.

    ``name``: the training has a seed of its own, from this name and the seed of the job; '': that of the job.
    ``source``: a digest of what it learns from; '': that of the people of the job.
    """

    def __init__(self, job: TrainingJob, settings: Settings, name: str = "", source: str = ""):
        torch.set_num_threads(job.threads)
        self.job, self.source = job, source
        self.settings: Any = settings
        self.seed = seeding.derive_seed(job.seed, name) if name else job.seed
        self._averages: dict[str, loop.Average] = {}

    @cached_property
    def archive(self) -> FaceArchive:
        """The faces of the job."""
        return FaceArchive(self.job.faces)

    def pictures(self) -> np.ndarray:
        """The images of the people of the job, uint8 (N, S, S, 3)."""
        return self.archive.pictures(self.archive.select(self.job.people))

    def start(self) -> None:
        """Seed the initial weights of the networks that are built next."""
        torch.manual_seed(seeding.derive_seed(self.seed, "weights"))

    def average(self, network: Network) -> Network:
        """The moving average of a network, with the decay ``settings.ema``. `fit` updates it."""
        average = loop.Average(network, self.settings.ema)
        self._averages[str(len(self._averages))] = average
        return average.module

    def fit(
        self,
        task: loop.Task,
        steps: int,
        samples: Callable[[], np.ndarray] | None = None,
        *parts: object,
        first: int = 0,
        log: loop.Log | None = None,
    ) -> None:
        """Take ``steps`` steps of a task, from the state of an interrupted training if there is one.

        ``samples``: draws an image, uint8 (H, W, 3), after every ``settings.samples_every`` steps and after the last.
        Steps before ``first`` give none and do not count. ``parts``: see `digest`. ``log``: in place of the job's.
        """

        def after(step: int) -> None:
            done = step + 1 - first
            if samples is not None and done > 0 and (done % self.settings.samples_every == 0 or step + 1 == steps):
                self.job.picture(f"samples_{done:06d}", samples())

        loop.fit(
            task, steps, loop.Unfinished(self.job.state, self.digest(*parts)), log or self.job.log,
            averages=self._averages, after=after, arithmetic=self.settings.arithmetic,
        )  # fmt: skip

    def digest(self, *parts: object) -> str:
        """A digest of all that the training depends on: settings, seed, faces, backbones and further ``parts``."""
        faces = self.source or self.archive.digest(self.job.people)
        settings = self.settings.model_dump(mode="json", exclude_none=True)
        backbones = self.hash_backbones(*self.job.backbones)
        return compute_digest(settings, self.seed, faces, backbones, *parts)

    def hash_backbones(self, *names: str) -> dict[str, str]:
        """The metadata of a checkpoint that belongs to these backbones: name -> MD5 (`checkpoints.Saved`)."""
        return {name: fingerprints.md5(self.job.backbones[name]) for name in names}

    def save(self, modules: Mapping[str, nn.Module], metadata: Mapping[str, object], tied: Iterable[str] = ()) -> None:
        """Write the checkpoint of the job. ``tied``: the backbones that it belongs to."""
        checkpoints.save_checkpoint(self.job.checkpoint, modules, {**metadata, **self.hash_backbones(*tied)})


def compute_digest(*parts: object) -> str:
    """SHA-256 of plain JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def arrange_columns(columns: Iterable[np.ndarray | Tensor]) -> np.ndarray:
    """A sample image, uint8 (N S, columns S, 3), of columns (N, 3, S, S) in [-1, 1] of N images each."""
    arrays = (column.cpu().numpy() if isinstance(column, Tensor) else column for column in columns)
    return np.concatenate([np.concatenate(list(to_uint8(array))) for array in arrays], axis=1)


class Phases:
    """``phases``: name -> number of steps and task. The steps of each task start at 0.

    ``shared``: modules to keep beside those of the tasks. A module of several tasks is kept once.
    """

    def __init__(self, phases: Mapping[str, tuple[int, Task]], shared: Mapping[str, nn.Module] | None = None):
        self.phases = dict(phases)
        self.steps = sum(steps for steps, _ in phases.values())
        self.tasks = [task for _, task in phases.values()]
        self.modules = dict(shared or {})
        self.optimizers: dict[str, Stateful] = {}
        for name, (_, task) in phases.items():
            module_ids = {id(module) for module in self.modules.values()}
            self.modules |= {f"{name}.{key}": part for key, part in task.modules.items() if id(part) not in module_ids}
            self.optimizers |= {f"{name}.{key}": part for key, part in task.optimizers.items()}

    def step(self, step: int) -> dict[str, float]:
        """One update of the phase to which the step belongs. Returns its losses."""
        for steps, task in self.phases.values():
            if step < steps:
                return task.step(step)
            step -= steps
        raise IndexError("no phase is left")
