"""One module an anonymizer. Name = module = key under ``methods:`` in params.yaml."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from masquerade.images import FaceArchive, Faces
from masquerade.keys import Keys
from masquerade.settings import Settings


@dataclass(frozen=True)
class Capabilities:
    """What a method can do and needs; the matrix plans with it and the contract tests hold the method to it."""

    trains: bool = False
    keys: Keys | None = None
    """Which keys it takes; None where it takes none."""
    invertible: bool = False
    """`Method.recover` brings faces back from the anonymized pictures (and the key, where it takes one)."""
    saves: bool = False
    """Faces can be recovered from a saved representation: `Method.save` and `Method.recover_saved`."""
    pastes: bool = False
    """It refines the background; `Method.recover_onto` does so with the original's, as a published evaluation did."""
    attribute_selective: bool = False
    differentially_private: bool = False
    control: bool = False
    gallery: bool = False
    """It needs pictures of other people: the train split of the dataset, whose identities are disjoint."""
    fakes: bool = False
    """It needs the set of fakes: codes and features of generated faces."""
    latents: bool = False
    """It works on the codes of the faces; the pipeline hands it those that were computed before."""
    landmarks: bool = False
    """It needs the 68 landmarks of each face; faces without them are refused with that reason."""
    deterministic: bool = True
    """The seed does not change its result."""


@dataclass(frozen=True)
class Resources:
    """What the pipeline (or the command line) hands a method: its checkpoint, backbones, gallery, and fakes.

    ``latents``: codes of the faces to anonymize; None where the method must compute them (the command line).
    """

    checkpoint: Path | None = None
    backbones: Mapping[str, Path] = field(default_factory=dict)
    gallery: FaceArchive | None = None
    fakes: Path | None = None
    latents: Path | None = None


@dataclass(frozen=True)
class TrainingJob:
    """One training: pictures in, checkpoint out. Small and stateless, so that a cluster can requeue it.

    ``state`` is where the loop keeps what it needs to go on after an interruption; ``log(step, {name: value})``
    receives the curves; ``picture(name, uint8 (H, W, 3))`` receives sample pictures. ``base``: a
    checkpoint of which what both trainings have in common need not be learnt again: of an ablation, the training
    without it; else that of the method's kin.
    """

    faces: Path
    backbones: Mapping[str, Path]
    checkpoint: Path
    state: Path
    seed: int
    threads: int
    log: Callable[[int, Mapping[str, float]], None]
    picture: Callable[[str, np.ndarray], None]
    base: Path | None = None


class Method(ABC):
    """What a module of methods/ defines, once: a subclass whose docstring cites the paper.

    ``Params`` are the knobs that a checkpoint depends on (its block ``methods.<name>.params``); ``Variant`` the knobs
    of anonymization alone (each entry of ``methods.<name>.variants``): many variants share one checkpoint. ``needs``
    names the backbones. Importing the module must not import torch; do it in the functions.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    needs: ClassVar[tuple[str, ...]] = ()
    kin: ClassVar[str] = ""
    """Another method with the same networks: where both ask for the same training, one is enough (job.base)."""

    class Params(Settings):
        pass

    class Variant(Settings):
        pass

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        """Load what is needed. Raises CheckpointError where the checkpoint does not fit ``params``."""
        self.params = params
        self.variant = variant
        self.resources = resources

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        """Train and write ``job.checkpoint`` (only where ``capabilities.trains``); resumable from ``job.state``."""
        raise NotImplementedError(f"{cls.__name__} does not train")

    def observe(self, batches: Iterable[Faces]) -> None:  # noqa: B027 - optional hook
        """Called once before ``anonymize`` with the whole set to anonymize, for statistics of the set."""

    @abstractmethod
    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """float32 (N, 3, H, W) in [-1, 1].

        A face's result depends on the face, the seed and the key, not on the batch it is in.
        """

    def recover(self, images: np.ndarray, key: bytes | None) -> np.ndarray:
        """The original faces back from the anonymized PICTURES alone (only where ``capabilities.invertible``).

        float32 (N, 3, H, W) in [-1, 1] twice. A wrong key gives a face as well, and never an error. ``key`` is None
        where the method takes none.
        """
        raise NotImplementedError(f"{type(self).__name__} is not invertible")

    def recover_nearly(self, images: np.ndarray, key: bytes) -> dict[str, np.ndarray]:
        """What a key that is almost right brings back, by what is wrong with it."""
        return {wrong: self.recover(images, near) for wrong, near in self.capabilities.keys.near(key).items()}

    def save(self, faces: Faces, seed: int, key: bytes | None) -> object:
        """The representation of the anonymized faces that could be kept beside their pictures (``capabilities.saves``).

        What `anonymize` draws the pictures from; it holds nothing of the key. A method that takes no key keeps with it
        what undoes the anonymization: then it is itself the secret.
        """
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def recover_saved(self, saved: object, key: bytes | None) -> np.ndarray:
        """The original faces back from what `save` gave: float32 (N, 3, H, W) in [-1, 1]."""
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def recover_onto(self, images: np.ndarray, key: bytes, originals: np.ndarray) -> np.ndarray:
        """As `recover`, with the background of the ORIGINAL pictures, which nobody who recovers has.

        Only where ``capabilities.pastes``; a published evaluation did so, and its numbers compare with these.
        """
        raise NotImplementedError(f"{type(self).__name__} refines no background")

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """Further pictures of the same faces that a figure of the paper shows, by name: float32 (N, 3, H, W)."""
        return {}

    def features(self, faces: Faces) -> dict[str, np.ndarray]:
        """The features that it takes faces apart into, by name: float32 (N, D), the same for a face in every batch.

        ``codes`` among them: the representation that was taken apart. None where it takes nothing apart.
        """
        return {}

    def statement(self) -> dict[str, object]:
        """Facts about this run that tables and runs must print (e.g. epsilon with its sensitivity)."""
        return {}


BASE = Method
