"""The frozen networks by role, one module or folder each: generator, inversion, identity, semantics, parsing, ...

Architectures are in networks/ and the training loop is in training/; the judges that use these networks are in judges/.
A backbone is trained here (``backbones.smk``) or adopted from a published weight file, ours in
weights/ or an official one. Each has a checkpoint, a run,
and quality figures with floors below which the run stops.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from masquerade import assets
from masquerade.core import discovery, files, fingerprints, weight_names
from masquerade.core.errors import BelowFloor, CheckpointError
from masquerade.core.settings import NoParameters, Settings
from masquerade.networks.inputs import place
from masquerade.training import cards
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger(__name__)

CHECKSUM = "#sha256="
"""The text between the path of a published file and its checksum, as in pip's URLs."""


class Backbone(ABC):
    """A backbone. A module of backbones/ defines one subclass, with its ``Params``: its block under ``backbones:``.

    Importing the module must not import torch; import torch in the functions.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """The other backbones that its training needs; their checkpoints are in ``job.backbones``."""
    losses: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files, beside those of ``needs``, whose networks its losses may use."""
    teachers: ClassVar[tuple[str, ...]] = ()
    """Judges from whose answers it learns, if a dataset has its labels from them (``Dataset.labeled_by``)."""

    architecture: ClassVar[tuple[str, ...]]
    """Dotted keys of ``Params`` that its tensors and its use depend on. Adopted weights must have the same values."""
    packages: ClassVar[Mapping[str, str]] = {}
    """Value of ``published`` that names a package -> SHA-256 of the file in it, which `write_packaged` reads."""
    any_size: ClassVar[bool] = False
    """Whether its weights hold on images of another size than those of the training, which it resizes."""
    people: ClassVar[str] = "backbones"
    """The group of people that it learns from (core/people.py): ``judges`` for a network that no loss and no method
    uses."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings):
        self.params = params

    @property
    def asset(self) -> str:
        """The role in the registry of assets that the parameter ``published`` names (``asset:<role>``); '' for none."""
        name = getattr(self.params, "published", "")
        return name.removeprefix(assets.PREFIX) if name.startswith(assets.PREFIX) else ""

    @property
    def weights(self) -> str:
        """The name in weights/ that the parameter ``published`` names (``weights:<name>``); '' for none."""
        return weight_names.parse_weights_name(getattr(self.params, "published", ""))

    @property
    def package(self) -> str:
        """The value ``package:<name>`` of ``published`` whose file replaces the training (`packages`); '' for none."""
        published = getattr(self.params, "published", "")
        return published if published in self.packages else ""

    @property
    def terms(self) -> str:
        """Terms of use that a published network puts on it and on whatever learns from it; '' for none."""
        return ""

    @property
    def published(self) -> Path | None:
        """The published weight file to adopt, or None if the backbone is trained here or is that of a package.

        The parameter ``published`` names it: ``path``, ``path#sha256=<checksum>``, ``asset:<role>`` or
        ``weights:<name>``. `check_published` checks the file, and `load_pretrained` that of weights/. Raises AssetError
        for an unknown role.
        """
        if self.asset:
            return assets.path(self.asset)
        if self.weights:
            return cards.weights_path(self.weights)
        if self.package:
            return None
        name = getattr(self.params, "published", "").partition(CHECKSUM)[0]
        return Path(name) if name else None

    def check_published(self) -> str:
        """SHA-256 of the published file. Raises CheckpointError if it is missing or not the stated file."""
        if self.asset:
            return assets.digest(assets.check_asset(self.asset))
        path, _, expected = self.params.published.partition(CHECKSUM)
        if not Path(path).is_file():
            raise CheckpointError(f"{path} is missing: place the published weight file there, or correct its path.")
        digest = fingerprints.sha256(Path(path))
        if expected and digest != expected.lower():
            raise CheckpointError(
                f"{path} is altered or another file: its SHA-256 is {digest}, and params.yaml states {expected}. Fetch "
                "it again from its publisher, or correct the checksum if you trust this file."
            )
        return digest

    def build(self, job: TrainingJob, report: Path) -> None:
        """Train or adopt, measure the quality, and write the figures to ``report``.

        Weights of weights/ have the figures of their card. Of several processes, the first one measures. If a figure is
        below its floor, the checkpoint is deleted and BelowFloor is raised.
        """
        import torch

        from masquerade.training import distributed

        torch.set_num_threads(job.threads)
        about = {"backbone": job.checkpoint.stem, "title": self.title, "published": "", "sha256": "", "figures_of": ""}
        card = None
        with distributed.join_processes() as first:
            if self.weights:
                card = self._adopt_weights(job)
                about |= {"published": self.params.published, "sha256": card.sha256, "figures_of": card.scale}
            elif self.package:
                about |= {"published": self.params.published, "sha256": self.write_packaged(job.checkpoint)}
            elif self.published:
                about |= {"published": str(self.published), "sha256": self.check_published()}
                self.convert_official(self.published, job)
            else:
                self.train(job)
        if not first:
            return
        figures, floors = self.quality(job) if card is None else card.quality, self.floors()
        listed = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        logger.info("%s on unseen identities: %s", job.checkpoint.stem, listed)
        job.log(0, {f"quality/{name}": value for name, value in figures.items()})
        poor = {name: (figures.get(name, math.nan), floor) for name, floor in floors.items()}
        poor = {name: (figure, floor) for name, (figure, floor) in poor.items() if not figure >= floor}
        if poor:
            job.checkpoint.unlink(missing_ok=True)
            shortfalls = "; ".join(
                f"{name} is {value:.4f}, the floor is {floor:.4f}" for name, (value, floor) in poor.items()
            )
            raise BelowFloor(
                f"backbone '{job.checkpoint.stem}' is too poor to build on: {shortfalls}. Train it longer or on more "
                f"identities (params.yaml, backbones.{job.checkpoint.stem}), or lower its floors there if you know why."
            )
        files.write_json(report, {**about, "quality": figures, "floors": floors})
        job.state.unlink(missing_ok=True)  # only now, because the measurement may be interrupted

    def _adopt_weights(self, job: TrainingJob) -> cards.Card:
        """Write ``job.checkpoint`` from weights/, load it strictly, and return the card of the weights."""
        from masquerade.training import pretrained

        card = pretrained.load_pretrained(self.weights, self.architecture, self.params, job.backbones, job.checkpoint)
        try:
            self.load(job.checkpoint)
        except CheckpointError:
            job.checkpoint.unlink(missing_ok=True)
            raise
        return card

    @abstractmethod
    def train(self, job: TrainingJob) -> None:
        """Train and write ``job.checkpoint``. An interrupted training resumes from ``job.state``."""

    def convert_official(self, published: Path, job: TrainingJob) -> None:
        """Write ``job.checkpoint`` from a published weight file, for a backbone whose ``Params`` has ``published``.

        Strict: raises CheckpointError naming keys that are missing, left over, or of another shape.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot read the published layout of {published}")

    def write_packaged(self, checkpoint: Path) -> str:
        """Write ``checkpoint`` from the file of ``package``, and return the SHA-256 of that file.

        Raises CheckpointError if the file is missing or another one.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no network from {self.package}")

    @abstractmethod
    def quality(self, job: TrainingJob) -> dict[str, float]:
        """Quality figures of ``job.checkpoint`` on the validation split, whose identities are not trained on."""

    @classmethod
    @abstractmethod
    def load(cls, checkpoint: Path) -> "nn.Module":
        """The network, frozen, in evaluation mode. The checkpoint states its architecture. Weights load strictly."""

    @abstractmethod
    def floors(self) -> dict[str, float]:
        """Name of a quality figure -> the value below which the run stops."""


class TrainedBackbone(Backbone):
    """A backbone whose folder has a module ``training``.

    ``train(params, job)``, ``quality(network, job)`` and ``load(checkpoint)`` are the methods of `Backbone`, and so is
    ``convert_official(params, published, job)``, which only a backbone with an official layout needs.
    """

    @staticmethod
    @abstractmethod
    def training() -> ModuleType:
        """The module ``training``. It imports torch, so this function imports it."""

    def train(self, job: TrainingJob) -> None:
        self.training().train(self.params, job)

    def convert_official(self, published: Path, job: TrainingJob) -> None:
        self.training().convert_official(self.params, published, job)

    def quality(self, job: TrainingJob) -> dict[str, float]:
        return self.training().quality(place(self.load(job.checkpoint)), job)

    @classmethod
    def load(cls, checkpoint: Path) -> "nn.Module":
        return cls.training().load(checkpoint)


def load_backbone(name: str, checkpoints: Mapping[str, Path]) -> Any:
    """The network of the backbone ``name``, frozen, on the GPU if there is one. ``checkpoints``: name -> checkpoint."""
    return place(discovery.load("backbones", name).load(checkpoints[name]))


BASE = Backbone
