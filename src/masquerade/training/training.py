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
from masquerade.training.job import TrainingJob

Network = TypeVar("Network", bound=nn.Module)


class Training:
    """The training of a network with ``settings``: its faces, seed, loop, sample pictures and checkpoint.

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
        """The pictures of the people of the job, uint8 (N, S, S, 3)."""
        return self.archive.pictures(self.archive.select(self.job.people))

    def start(self) -> None:
        """Seed the initial weights of the networks that are built next."""
        torch.manual_seed(seeding.derive_seed(self.seed, "weights"))

    def averaged(self, network: Network) -> Network:
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

        ``samples``: draws a picture, uint8 (H, W, 3), after every ``settings.samples_every`` steps and after the last.
        Steps before ``first`` give none and do not count. ``parts``: see `digest`. ``log``: in place of the job's.
        """

        def after(step: int) -> None:
            done = step + 1 - first
            if samples is not None and done > 0 and (done % self.settings.samples_every == 0 or step + 1 == steps):
                self.job.picture(f"samples_{done:06d}", samples())

        loop.fit(
            task, steps=steps, state=self.job.state, fingerprint=self.digest(*parts), log=log or self.job.log,
            averages=self._averages, after=after, arithmetic=self.settings.arithmetic,
        )  # fmt: skip

    def digest(self, *parts: object) -> str:
        """A digest of all that the training depends on: settings, seed, faces, backbones and further ``parts``."""
        faces = self.source or self.archive.digest(self.job.people)
        knobs, backbones = self.settings.model_dump(mode="json", exclude_none=True), self.ties(*self.job.backbones)
        return digest_of(knobs, self.seed, faces, backbones, *parts)

    def ties(self, *names: str) -> dict[str, str]:
        """The facts of a checkpoint that belongs to these backbones: name -> MD5 (`checkpoints.Saved`)."""
        return {name: fingerprints.md5(self.job.backbones[name]) for name in names}

    def save(self, modules: Mapping[str, nn.Module], facts: Mapping[str, object], tied: Iterable[str] = ()) -> None:
        """Write the checkpoint of the job. ``tied``: the backbones that it belongs to."""
        checkpoints.save_checkpoint(self.job.checkpoint, modules, {**facts, **self.ties(*tied)})


def digest_of(*parts: object) -> str:
    """SHA-256 of plain JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def side_by_side(columns: Iterable[np.ndarray | Tensor]) -> np.ndarray:
    """A sample picture, uint8 (N S, columns S, 3), of columns (N, 3, S, S) in [-1, 1] of N pictures each."""
    arrays = (column.cpu().numpy() if isinstance(column, Tensor) else column for column in columns)
    return np.concatenate([np.concatenate(list(to_uint8(array))) for array in arrays], axis=1)
