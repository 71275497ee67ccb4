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
    """What a method can do and what it needs. The matrix plans with these flags, and the contract tests check them."""

    trains: bool = False
    """The method has a training, which writes its checkpoint (but see `Method.trains`)."""
    keys: Keys | None = None
    """The kind of its keys; None if it takes no key."""
    invertible: bool = False
    """`Method.recover` recovers faces from the anonymized images (and from the key, if the method takes one)."""
    saves: bool = False
    """Faces can be recovered from a saved representation: `Method.save` and `Method.recover_saved`."""
    describes: bool = False
    """`Method.describe` writes a face into few bytes, which can be sealed under its key, and `Method.draw_described`
    draws it from them. The keys of the method are too many to be tried one after the other."""
    pastes: bool = False
    """It refines the background. `Method.recover_onto` takes the original one, as a published evaluation did."""
    attribute_selective: bool = False
    """Its variants choose the attributes to hide or to keep."""
    differentially_private: bool = False
    """It adds noise, or makes random choices, with a stated epsilon."""
    control: bool = False
    """It does not anonymize: it is a floor or a ceiling of the metrics."""
    gallery: bool = False
    """It needs images of other people: those of the methods' group, from which no judge learns and nobody is tested."""
    fakes: bool = False
    """It needs the set of fakes: latent codes and features of generated faces."""
    latents: bool = False
    """It works on the latent codes of the faces. The pipeline computes them before and passes them to the method, if
    the method needs the inversion."""
    landmarks: bool = False
    """It needs the 68 landmarks of each face. Faces without landmarks are refused with that reason."""
    sees_face: bool = True
    """The face region reaches its networks or its result. If False, noise in the region does not change the result, and
    a contract test checks this."""
    poisons: bool = False
    """Its images are meant for a recognizer to enrol or to learn from, so that it fails on later unprotected images.
    Our tables compare them with unprotected images instead, which is evasion, and their rows say so."""
    images: bool = False
    """It runs nothing: another program made its images, which it looks up by the ids of the faces."""
    deterministic: bool = True
    """The seed does not change the result of its first variant."""


@dataclass(frozen=True)
class Resources:
    """The files that the pipeline (or the command line) gives to a method."""

    checkpoint: Path | None = None
    """The file that its training wrote."""
    backbones: Mapping[str, Path] = field(default_factory=dict)
    """Role -> checkpoint, for each backbone in `Method.list_backbones`."""
    gallery: FaceArchive | None = None
    """Images of other people."""
    fakes: Path | None = None
    """The set of fakes."""
    latents: Path | None = None
    """Latent codes of the faces to anonymize; None if the method must compute them (on the command line)."""
    images: Path | None = None
    """The images that another program made."""
    originals: FaceArchive | None = None
    """The archive of the faces to anonymize, for a method with such images."""


class Method(ABC):
    """The base class of the anonymizers. This docstring specifies what a subclass must and may define.

    A method is one subclass in ``methods/<name>.py``, or in ``methods/<name>/method.py`` if it has further files. The
    name is its key under ``methods:`` in params.yaml, and a part of the paths of its outputs. The docstring of the
    class cites the paper. A method without training or backbones is complete with this::

        class Mosaic(Method):
            title = "Mosaic"
            paper = "nobody 2026"
            capabilities = Capabilities()

            class Variant(Settings):
                side: PositiveInt  # and below it, its description: unit and source

            variant: Variant

            def anonymize(self, faces, seed, keys=None):
                side = self.variant.side
                tiles = faces.images[:, :, ::side, ::side]  # (N, 3, H / side, W / side)
                return tiles.repeat(side, axis=2).repeat(side, axis=3)

    It needs this block in params.yaml, which ``masquerade params template mosaic`` prints::

        mosaic:
          params: {}
          variants:
            side_8: {side: 8}

    **Required**: `title`, `paper`, `capabilities` and `anonymize`. Everything else has a default. A capability that a
    method states requires the function of that capability: ``trains`` requires `train`, ``invertible`` requires
    `recover`, ``saves`` requires `save` and `recover_saved`, ``describes`` requires `describe` and `draw_described`,
    and ``pastes`` requires `recover_onto`.

    **Parameters**: ``Params`` are the parameters on which a checkpoint depends (the block ``methods.<name>.params``).
    ``Variant`` are the parameters of anonymization alone (each entry of ``methods.<name>.variants``). Many variants
    share one checkpoint.

    **Who calls what, and when**: rule ``train`` calls `train` once a seed. Rule ``anonymize`` makes an instance, calls
    `observe` with all faces of the set, and then `anonymize` batch by batch. Rule ``recoveries`` makes another instance
    and calls `recover` with the images of the archive, which have 8 bits, with right and with wrong keys.

    **Imports**: importing the module must not import torch, because the graph is planned without it. Import torch and
    what depends on it inside functions.
    """

    title: ClassVar[str]
    """The name in tables and figures."""
    paper: ClassVar[str]
    """Authors, year and identifier of the paper."""
    capabilities: ClassVar[Capabilities]
    needs: ClassVar[tuple[str, ...]] = ()
    """The backbones that it needs, by role, unless `list_backbones` says otherwise."""
    losses: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files, beside those of ``needs``, whose networks its losses may use. A judge that
    uses one of these files (``Judge.assets``) is not independent of the method, and the tables say so."""
    official: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files of its own network (``published: asset:<role>`` in its block)."""
    architecture: ClassVar[tuple[str, ...]] = ()
    """Dotted keys of ``Params`` on which the tensors and their use depend, if it trains. Pretrained weights of weights/
    (``published: weights:<name>`` in its block) must have the same values."""
    shares_training_with: ClassVar[str] = ""
    """Another method with the same networks. If both need the same training, it runs once (``TrainingJob.base``)."""
    people: ClassVar[str] = "methods"
    """The group of people from which methods learn (core/people.py). Galleries show these people, too."""

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
        """The file that its training wrote."""
        assert self.resources.checkpoint is not None
        return self.resources.checkpoint

    @classmethod
    def train(cls, params: Any, job: TrainingJob) -> None:
        """Train and write ``job.checkpoint``. An interrupted training continues from ``job.state``.

        Only if ``capabilities.trains``. Otherwise it raises NotImplementedError, as each optional function below does.
        """
        raise NotImplementedError(f"{cls.__name__} does not train")

    @classmethod
    def convert_official(cls, params: Any, role: str, checkpoint: Path) -> None:
        """Write ``checkpoint`` from the official weight file of ``role``, one of ``official``, instead of training.

        Raises AssetError if the file is missing or altered, and CheckpointError if it does not fit ``params``.
        """
        from masquerade.training import checkpoints, pretrained

        path = assets.check_asset(role)
        network = cls.load_official(params, path)
        checkpoints.save_checkpoint(checkpoint, {"network": network}, pretrained.describe_official(role, path))

    @classmethod
    def load_official(cls, params: Any, path: Path) -> "nn.Module":
        """The network of an official weight file, if there are ``official`` ones. Raises CheckpointError."""
        raise NotImplementedError(f"{cls.__name__} has no official weight file")

    @classmethod
    def list_backbones(cls, params: Any) -> tuple[str, ...]:
        """The backbones that it needs with these parameters, by role."""
        return cls.needs

    @classmethod
    def list_loss_files(cls, params: Any) -> tuple[str, ...]:
        """The roles of the official weight files that the training reads with these parameters; part of ``losses``."""
        return ()

    @classmethod
    def latent_stand_in(cls, params: Any) -> str:
        """What runs in place of the published method with these parameters, in words; '' for the method itself.

        Tables, figures and messages call such a method a latent stand-in, because its title alone would claim that the
        published method ran.
        """
        return ""

    def observe(self, batches: Iterable[Faces]) -> None:  # noqa: B027 - optional hook
        """Compute statistics of the whole set to anonymize. The pipeline calls it once, before `anonymize`."""

    @property
    def observes(self) -> bool:
        """Whether `observe` needs the whole set, so that no face can be anonymized before all of them were seen."""
        return type(self).observe is not Method.observe

    @abstractmethod
    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """The anonymized images, float32 (N, 3, H, W) in [-1, 1], in the order of ``faces``.

        ``keys``: one for each face, or None if the method takes no key. The result of a face depends on the face, the
        seed and its key, and not on its batch. Raises PictureError for a face that it cannot process: the pipeline then
        tries the faces one by one, and the archive states the reason. The original never takes the place of a result.
        """

    def resample(self, faces: Faces, number: int) -> np.ndarray | None:
        """Another result for faces on whose result the person is still recognized; None if the method has one alone.

        ``number``: 1, 2, ... gives the next result. Images as `anonymize` gives them.
        """
        return None

    def choose_batch_size(self, usual: int) -> int:
        """How many images `anonymize` should get at a time: ``usual``, or another number that is faster."""
        return usual

    def enlarge(self) -> Callable[[str], np.ndarray] | None:
        """A function that draws the result of `anonymize` for an id at the generator's full size: uint8 (L, L, 3).

        Call it before `anonymize`. Returns None if the method has no latent space, or a generator of one size.
        """
        space: LatentSpace | None = getattr(self, "_space", None)
        return space.enlarge() if space else None

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """The original faces, recovered from the anonymized IMAGES alone (only if ``capabilities.invertible``).

        Images and result: float32 (N, 3, H, W) in [-1, 1]. ``keys``: one for each image, or None if the method takes no
        key. A wrong key gives another face and no error.
        """
        raise NotImplementedError(f"{type(self).__name__} is not invertible")

    def try_near_keys(self, images: np.ndarray, keys: Sequence[bytes], number: int = 0) -> dict[str, np.ndarray]:
        """The faces recovered with keys that are almost right, by the kind of mistake in the key.

        ``keys``: the right ones. Each ``number`` makes the mistake at another place of the key.
        """
        assert self.capabilities.keys is not None
        near_keys = [self.capabilities.keys.near(key, number) for key in keys]
        return {kind: self.recover(images, [near[kind] for near in near_keys]) for kind in near_keys[0]}

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> object:
        """The representation of the anonymized faces, to store beside their images (only if ``capabilities.saves``).

        `anonymize` draws the images from it. It contains nothing of the key. If the method takes no key, it also
        contains what undoes the anonymization, and then it is itself the secret.
        """
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def recover_saved(self, saved: Any, keys: Sequence[bytes] | None) -> np.ndarray:
        """The original faces, recovered from the result of `save`: float32 (N, 3, H, W) in [-1, 1]."""
        raise NotImplementedError(f"{type(self).__name__} saves nothing")

    def describe(self, faces: Faces) -> list[bytes]:
        """Few bytes for each ORIGINAL face, from which `draw_described` draws it again (only if
        ``capabilities.describes``): at most `sealing.LONGEST_CONTENT`. They are the face itself, and are kept sealed
        under the key of the image (core/sealing.py). Raises PictureError for a face that it cannot describe.
        """
        raise NotImplementedError(f"{type(self).__name__} describes no face")

    def draw_described(self, descriptions: Sequence[bytes]) -> np.ndarray:
        """The faces of `describe`: float32 (N, 3, H, W) in [-1, 1]."""
        raise NotImplementedError(f"{type(self).__name__} describes no face")

    def recover_onto(self, images: np.ndarray, keys: Sequence[bytes], originals: np.ndarray) -> np.ndarray:
        """As `recover`, with the background of the ORIGINAL images, which a recovery does not have in practice.

        Only if ``capabilities.pastes``. A published evaluation did so, and these results compare with its numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} refines no background")

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """Further images of the same faces for a figure of the paper, by name: float32 (N, 3, H, W) in [-1, 1].

        ``draw.<n>``: anonymized again with other random numbers. Metrics of diversity treat these as they treat images
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
class ListedMethod:
    """A method that can be loaded: its ``name`` in params.yaml, and what its class states."""

    name: str
    title: str
    paper: str
    capabilities: Capabilities


def list_methods() -> list[ListedMethod]:
    """All methods that compute images, by name. Controls are among them (``capabilities.control``)."""
    classes = {name: discovery.load("methods", name) for name in discovery.list_programs()}
    return [ListedMethod(name, cls.title, cls.paper, cls.capabilities) for name, cls in classes.items()]


class _Room(ModuleType):
    """A package and a function: once the package is imported, ``masquerade.methods`` is the package."""

    def __call__(self) -> list[ListedMethod]:
        return list_methods()


sys.modules[__name__].__class__ = _Room
