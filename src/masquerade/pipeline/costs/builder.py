"""Builds the jobs, methods and judges of the pipeline, as its programs do, to count their cost."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.methods import Method, Resources
from masquerade.params import parameters as params
from masquerade.params.parameters import Parameters
from masquerade.pipeline.costs import torch_internals
from masquerade.pipeline.costs.meta import Cost, MetaExecution
from masquerade.training import adoption
from masquerade.training.job import TrainingJob

logger = logging.getLogger(__name__)

LONGEST = 120
"""Characters of a reason; the rest is cut."""


class Builder:
    """Builds the objects of ``parameters``, and counts their cost in ``meta``.

    ``folder``: an empty folder for their files. ``root``: the repository with weights/. ``archive``: the path of the
    faces that they read. ``progress``: called with the name of what is counted next.
    """

    def __init__(
        self, parameters: Parameters, meta: MetaExecution, folder: Path, root: Path, progress: Callable[[str], None]
    ):
        self.parameters, self.meta, self.folder, self.root, self.progress = parameters, meta, folder, root, progress
        self.archive = folder / "faces.zip"

    def path(self, name: str) -> Path:
        """The checkpoint of a backbone, of ``method.<name>`` or of ``method.<name>.<ablation>``."""
        return self.folder / f"{name}.safetensors"

    def size(self, checkpoint: Path, share: float = 1.0) -> int:
        """Bytes of a checkpoint, times ``share``; 0 when it does not exist."""
        return round(self.meta.size(checkpoint) * share) if checkpoint.is_file() else 0

    def job(self, checkpoint: Path, needs: Iterable[str], base: Path | None = None, seed: int = 0) -> TrainingJob:
        """The job of a training. ``needs``: names of backbones. ``base``: the checkpoint that it starts from."""
        return TrainingJob(
            faces=self.archive, backbones={name: self.path(name) for name in needs}, checkpoint=checkpoint,
            state=self.folder / "state.pt", seed=seed, threads=1, log=lambda *_: None, picture=lambda *_: None,
            base=base if base is not None and base.is_file() else None,
            people="train",  # all its pictures are alike
        )  # fmt: skip

    def adopt(
        self, weights: str, architecture: tuple[str, ...], knobs: Settings, needs: Iterable[str], checkpoint: Path
    ) -> None:
        """Write the checkpoint of a network of weights/. Raises as `adoption.adopt`."""
        with torch_internals.values():
            adoption.adopt(
                weights, architecture, knobs, {name: self.path(name) for name in needs}, checkpoint, self.root
            )

    def method(self, name: str, variant: str) -> Method:
        """A method with the checkpoint of the variant: its own when the variant is an ablation."""
        cls, block = discovery.load("methods", name), self.parameters.methods[name]
        ablation = self.parameters.ablations(name).get(variant)
        knobs = params.trained_with(cls, block.params.model_dump(mode="json"), ablation)
        resources = Resources(
            checkpoint=self.path(f"method.{name}.{variant}" if ablation else f"method.{name}"),
            backbones={backbone: self.path(backbone) for backbone in self.parameters.needs(name)},
            gallery=FaceArchive(self.archive),
            fakes=self.path("fakes"),
            latents=self.path("latents"),
        )
        return cls(knobs, block.variants[variant], resources)

    def judge(self, name: str) -> Judge:
        cls = discovery.load("judges", name)
        return cls(self.parameters.judges[name], {backbone: self.path(backbone) for backbone in cls.needs})

    def counted(self, name: str, work: Callable[[], object]) -> tuple[Cost, str]:
        """The cost of ``work``, and ''. When ``work`` fails without values or files: a cost of zero, and the reason."""
        self.progress(name)
        try:
            with self.meta.counted() as cost:
                work()
        except Exception as error:  # any code may fail on tensors without values; the plan gives the reason
            logger.debug("%s is not counted", name, exc_info=True)
            lines = str(error).splitlines() or [type(error).__name__]
            return Cost(), f"not counted: {lines[0].replace(str(self.folder), '')[:LONGEST]}"
        return cost, ""


def ordered(names: Iterable[str], room: str) -> list[str]:
    """Sorts the names of backbones so that each comes after those that it needs."""
    requested = list(names)
    in_order: list[str] = []

    def add(name: str) -> None:
        for needed in discovery.load(room, name).needs:
            add(needed)
        if name not in in_order:
            in_order.append(name)

    for name in requested:
        add(name)
    return [name for name in in_order if name in requested]
