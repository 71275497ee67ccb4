"""One file or folder an anonymizer, named as its key under ``methods:`` in params.yaml.

The base class below specifies an anonymizer. The package is a function, too: ``masquerade.methods()``. Shared code is
in latent/, which other rooms may import, and in modules and folders with an underscore. Frozen networks (backbones/)
and metrics (metrics/) are not here.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, Faces
from masquerade.core.keys import Keys
from masquerade.core.settings import NoParameters, Settings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import nn

    from masquerade.methods.latent.space import LatentSpace


@dataclass(frozen=True)
class Capabilities:
    """What a method can do and what it needs. The matrix plans with it, and the contract tests check it."""

    trains: bool = False
    """It has a training, which writes its checkpoint (but see `Method.trains`)."""
    keys: Keys | None = None
    """The kind of its keys; None if it takes no key."""
    invertible: bool = False
    """`Method.recover` recovers faces from the anonymized pictures (and the key, if it takes one)."""
    saves: bool = False
    """Faces can be recovered from a saved representation: `Method.save` and `Method.recover_saved`."""
    pastes: bool = False
    """It refines the background. `Method.recover_onto` takes the original background, as a published evaluation did."""
    attribute_selective: bool = False
    """Its variants choose the attributes to hide or to keep."""
    differentially_private: bool = False
    """It adds noise or random choices with a stated epsilon."""
    control: bool = False
    """It is no anonymizer but a floor or ceiling of the metrics."""
    gallery: bool = False
    """It needs pictures of other people: those of the methods' group, of whom no judge learns and nobody is tested."""
    fakes: bool = False
    """It needs the set of fakes: codes and features of generated faces."""
    latents: bool = False
    """It works on the latent codes of the faces, which the pipeline computes before and passes to it, if it needs the
    inversion."""
    landmarks: bool = False
    """It needs the 68 landmarks of each face. Faces without landmarks are refused with that reason."""
    sees_face: bool = True
    """The face region reaches its networks or its result. If False, noise in the region changes nothing, and a contract
    test holds it."""
    poisons: bool = False
    """It is made for pictures that a recognizer enrols or learns from, to make it fail on later clear photographs.
    Tables compare its pictures with clear ones, which is evasion: their rows say so (papers/evasion.py)."""
    deterministic: bool = True
    """The seed does not change the result of its first variant."""


@dataclass(frozen=True)
class Resources:
    """The files that the pipeline (or the command line) gives to a method."""

    checkpoint: Path | None = None
    """What its training wrote."""
    backbones: Mapping[str, Path] = field(default_factory=dict)
    """Role -> checkpoint, of the backbones in ``Method.needs``."""
    gallery: FaceArchive | None = None
    """Pictures of other people."""
    fakes: Path | None = None
    """The set of fakes."""
    latents: Path | None = None
    """Codes of the faces to anonymize; None if the method must compute them (on the command line)."""


class Method(ABC):
    """The base class: each anonymizer defines one subclass, whose docstring cites the paper.

    ``Params`` are the knobs that a checkpoint depends on (the block ``methods.<name>.params``). ``Variant`` are the
    knobs of anonymization alone (each entry of ``methods.<name>.variants``), so many variants share one checkpoint.
    The import of the module must not import torch; import torch inside functions.
    """

    title: ClassVar[str]
    """The name in tables and figures."""
    paper: ClassVar[str]
    """Authors, year and identifier of the paper."""
    capabilities: ClassVar[Capabilities]
    needs: ClassVar[tuple[str, ...]] = ()
    """The backbones that it needs, by role, unless `needed` says otherwise."""
    losses: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files, beside those of ``needs``, whose networks its losses may use. For it a judge
    with one of these files (``Judge.assets``) is not independent, and the tables state it."""
    official: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files of its own network, which `adopt` reads (``published: asset:<role>``)."""
    architecture: ClassVar[tuple[str, ...]] = ()
    """Dotted keys of ``Params`` that its tensors and its use depend on, if it trains. Weights that it adopts
    (``published: weights:<name>`` in its block) must have the same values."""
    kin: ClassVar[str] = ""
    """Another method with the same networks. If both need the same training, it runs once (``TrainingJob.base``)."""
    people: ClassVar[str] = "methods"
    """The group of people that methods learn from (core/people.py). Galleries show these people, too."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""
    Variant: ClassVar[type[Settings]] = NoParameters
    variant: Any
    """An instance of ``Variant``. A subclass with its own ``Variant`` declares it with that type."""

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        """Load the files. Raises CheckpointError if the checkpoint does not fit ``params``."""
        self.params = params
        self.variant = variant
        self.resources = resources

    @property
    def checkpoint(self) -> Path:
        """What its training wrote."""
        assert self.resources.checkpoint is not None
        return self.resources.checkpoint

    @classmethod
    def train(cls, params: Any, job: TrainingJob) -> None:
        """Train and write ``job.checkpoint``; an interrupted training goes on from ``job.state``.

        Only if ``capabilities.trains``; else raises NotImplementedError, as each optional function below.
        """
        raise NotImplementedError(f"{cls.__name__} does not train")

    @classmethod
    def adopt(cls, params: Any, role: str, checkpoint: Path) -> None:
        """Write ``checkpoint`` from the official weight file of ``role``, one of ``official``, in place of a training.

        Raises AssetError if the file is missing or altered, and CheckpointError if it does not fit ``params``.
        """
        from masquerade.training import adoption, checkpoints

        path = assets.checked(role)
        checkpoints.save_checkpoint(checkpoint, {"network": cls.published(params, path)}, adoption.official(role, path))

    @classmethod
    def published(cls, params: Any, path: Path) -> "nn.Module":
        """The network of an official weight file, if there are ``official`` ones. Raises CheckpointError."""
        raise NotImplementedError(f"{cls.__name__} has no official weight file")

    @classmethod
    def needed(cls, params: Any) -> tuple[str, ...]:
        """The backbones that it needs with these parameters, by role."""
        return cls.needs

    @classmethod
    def trains(cls, params: Any) -> bool:
        """Whether it has a checkpoint of its own with these parameters, if it has a training at all."""
        return cls.capabilities.trains

    @classmethod
    def latent_stand_in(cls, params: Any) -> str:
        """What runs in the place of the published method with these parameters, in words; '' for the method itself.

        Tables, figures and messages call such a method a latent stand-in, because its title alone is not its own.
        """
        return ""

    @classmethod
    def files(cls, params: Any) -> tuple[str, ...]:
        """The roles of the official weight files that the training reads with these parameters; part of ``losses``."""
        return ()

    def observe(self, batches: Iterable[Faces]) -> None:  # noqa: B027 - optional hook
        """Compute statistics of the whole set to anonymize. The pipeline calls it once, before `anonymize`."""

    @property
    def observes(self) -> bool:
        """Whether `observe` needs the whole set, so that no face can be anonymized before the last one is known."""
        return type(self).observe is not Method.observe

    @abstractmethod
    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """The anonymized pictures, float32 (N, 3, H, W) in [-1, 1].

        ``keys``: one for each face, or None if the method takes no key. The result of a face depends on the face, the
        seed and its key, and not on its batch.
        """

    def otherwise(self, faces: Faces, number: int) -> np.ndarray | None:
        """Another result for faces on whose first one the person is still recognized; None if the method has one alone.

        ``number``: 1, 2, ... gives the next one.
        """
        return None

    def at_once(self, usual: int) -> int:
        """How many pictures `anonymize` should get at a time: ``usual``, or another number that is faster."""
        return usual

    def enlarge(self) -> Callable[[str], np.ndarray] | None:
        """A function that draws the result of `anonymize` for an id at the generator's full size: uint8 (L, L, 3).

        Call it before `anonymize`. Returns None if the method has no latent space, or a generator of one size.
        """
        space: LatentSpace | None = getattr(self, "_space", None)
        return space.enlarge() if space else None

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """The original faces, recovered from the anonymized PICTURES alone (only if ``capabilities.invertible``).

        Pictures and result: float32 (N, 3, H, W) in [-1, 1]. ``keys``: one for each picture, or None if the method
        takes no key. A wrong key gives another face and no error.
        """
        raise NotImplementedError(f"{type(self).__name__} is not invertible")

    def recover_nearly(self, images: np.ndarray, keys: Sequence[bytes], number: int = 0) -> dict[str, np.ndarray]:
        """The faces recovered with keys that are almost right, by the kind of mistake in the key.

        ``keys``: the right ones. Each ``number`` makes the mistake at another place of the key.
        """
        assert self.capabilities.keys is not None
        near = [self.capabilities.keys.near(key, number) for key in keys]
        return {kind: self.recover(images, [each[kind] for each in near]) for kind in near[0]}

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> object:
        """The representation of the anonymized faces, to keep beside their pictures (only if ``capabilities.saves``).

        `anonymize` draws the pictures from it. It holds nothing of the key. If the method takes no key, it also holds
        what undoes the anonymization, and then it is itself the secret.
        """
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def recover_saved(self, saved: Any, keys: Sequence[bytes] | None) -> np.ndarray:
        """The original faces, recovered from the result of `save`: float32 (N, 3, H, W) in [-1, 1]."""
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def recover_onto(self, images: np.ndarray, keys: Sequence[bytes], originals: np.ndarray) -> np.ndarray:
        """As `recover`, with the background of the ORIGINAL pictures, which a recovery does not have in practice.

        Only if ``capabilities.pastes``. A published evaluation did so, and its numbers compare with these.
        """
        raise NotImplementedError(f"{type(self).__name__} refines no background")

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """Further pictures of the same faces for a figure of the paper, by name: float32 (N, 3, H, W) in [-1, 1].

        ``draw.<n>``: anonymized again with other random numbers. Metrics of diversity take them as they take pictures
        under other keys.
        """
        return {}

    def features(self, faces: Faces) -> dict[str, np.ndarray]:
        """The features into which the method separates a face, by name: float32 (N, D), the same in every batch.

        ``codes`` is among them: the representation before the separation. Empty if the method separates nothing.
        """
        return {}

    def statement(self) -> dict[str, object]:
        """Facts about this run that tables and runs must show (e.g. epsilon with its sensitivity)."""
        return {}


BASE = Method


@dataclass(frozen=True)
class Listed:
    """A method that can be loaded: its ``name`` in params.yaml, and what its class says."""

    name: str
    title: str
    paper: str
    capabilities: Capabilities


def listed() -> list[Listed]:
    """All methods, by name. Controls are among them (``capabilities.control``)."""
    classes = {name: discovery.load("methods", name) for name in discovery.names("methods")}
    return [Listed(name, cls.title, cls.paper, cls.capabilities) for name, cls in classes.items()]


class _Room(ModuleType):
    """A package and a function: once the package is imported, ``masquerade.methods`` is the package."""

    def __call__(self) -> list[Listed]:
        return listed()


sys.modules[__name__].__class__ = _Room
