"""Frozen networks by role (identity, recognisers, generator, inversion, semantics, parsing, landmarks).

At ``mini`` scale they are trained here by ``backbones.smk``; each has a checkpoint, a run, and a quality figure
with a floor below which the run stops.
"""

import hashlib
import logging
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from masquerade import assets, steps
from masquerade.errors import BelowFloor, CheckpointError
from masquerade.methods import TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger(__name__)

CHECKSUM = "#sha256="
"""Between the path of a published file and its checksum, as in pip's URLs."""


class Backbone(ABC):
    """What a module of backbones/ defines, once: a subclass with its ``Params`` (its block under ``backbones:``).

    Importing the module must not import torch; do it in the functions.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """Other backbones that it is trained with; their checkpoints come in ``job.backbones``."""

    class Params(Settings):
        pass

    def __init__(self, params: Settings):
        self.params = params

    @property
    def asset(self) -> str:
        """The role of the registry of assets that the knob ``published`` asks for (``asset:<role>``); '' for none."""
        name = getattr(self.params, "published", "")
        return name.removeprefix(assets.PREFIX) if name.startswith(assets.PREFIX) else ""

    @property
    def published(self) -> Path | None:
        """The published weight file that takes the place of a training; None where it is trained here.

        The knob ``published`` names it: a path, behind which ``#sha256=`` may give its checksum, or ``asset:<role>``.
        `check_published` checks it. Raises AssetError for a role that there is not.
        """
        if self.asset:
            return assets.path(self.asset)
        name = getattr(self.params, "published", "").partition(CHECKSUM)[0]
        return Path(name) if name else None

    def check_published(self) -> str:
        """SHA-256 of the published file. Raises CheckpointError where it is missing or not the one that is named."""
        if self.asset:
            return assets.digest(assets.checked(self.asset))
        path, _, wanted = self.params.published.partition(CHECKSUM)
        if not self.published.is_file():
            raise CheckpointError(f"{path} is missing: place the published weight file there, or correct its path.")
        with self.published.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if wanted and found != wanted.lower():
            raise CheckpointError(
                f"{path} is altered or another file: its SHA-256 is {found}, params.yaml asks for {wanted}. Fetch it "
                "again from its publisher, or correct the checksum if you trust this file."
            )
        return found

    def build(self, job: TrainingJob, report: Path) -> None:
        """Train or adopt, judge, and write the figures to ``report``; of several processes, the first judges.

        Raises BelowFloor, and leaves no checkpoint, where a figure is below its floor.
        """
        from masquerade import distributed

        about = {"backbone": job.checkpoint.stem, "title": self.title, "published": "", "sha256": ""}
        with distributed.processes() as first:
            if self.published:
                about |= {"published": str(self.published), "sha256": self.check_published()}
                self.adopt(self.published, job)
            else:
                self.train(job)
        if not first:
            return
        figures, floors = self.quality(job), self.floors()
        told = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        logger.info("%s on unseen identities: %s", job.checkpoint.stem, told)
        job.log(0, {f"quality/{name}": value for name, value in figures.items()})
        poor = {name: (figures[name], floor) for name, floor in floors.items() if not figures[name] >= floor}
        if poor:
            job.checkpoint.unlink(missing_ok=True)
            told = "; ".join(
                f"{name} is {value:.4f}, the floor is {floor:.4f}" for name, (value, floor) in poor.items()
            )
            raise BelowFloor(
                f"backbone '{job.checkpoint.stem}' is too poor to build on: {told}. Train it longer or on more "
                f"identities (params.yaml, backbones.{job.checkpoint.stem}), or lower its floors there if you know why."
            )
        steps.write_json(report, {**about, "quality": figures, "floors": floors})
        job.state.unlink(missing_ok=True)  # not before: judging may be interrupted, too

    @abstractmethod
    def train(self, job: TrainingJob) -> None:
        """Train and write ``job.checkpoint``; resumable from ``job.state``."""

    def adopt(self, published: Path, job: TrainingJob) -> None:
        """Write ``job.checkpoint`` from a published weight file (only where ``Params`` has ``published``).

        Strict: raises CheckpointError naming keys that are missing, left over, or of another shape.
        """
        raise NotImplementedError(f"{type(self).__name__} knows no published layout of {published}")

    @abstractmethod
    def quality(self, job: TrainingJob) -> dict[str, float]:
        """How good ``job.checkpoint`` is on the validation split, whose identities were never trained on."""

    @classmethod
    @abstractmethod
    def load(cls, checkpoint: Path) -> "nn.Module":
        """The network, frozen, in evaluation mode. Its architecture is read from the checkpoint. Strict."""

    @abstractmethod
    def floors(self) -> dict[str, float]:
        """The quality figures below which the run stops."""


BASE = Backbone
