"""Attackers who know which method made the images, and who learn from people that nobody else uses.

An attacker never sees a tested person before the attack. The steps that call it are in pipeline/, what its answers
mean is in metrics/.
"""

from abc import ABC
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from masquerade.core.settings import NoParameters, Settings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study import AttackerTrainingSet
    from masquerade.methods import Capabilities

Asks = Literal["naming", "linking", "protecting"]
"""``naming``: the gallery is clear and the probe anonymized. ``linking``: both are anonymized. ``protecting``: the
gallery has anonymized images of the person and unprotected ones of all others, and the probe is clear."""
Recognizer = Callable[[np.ndarray], np.ndarray]
"""Images float32 (N, 3, H, W) in [-1, 1] -> embeddings (N, D). A person is whoever has the nearest image
(`Attacker.compare`)."""


class Attacker(ABC):
    """An attacker. Each is one class of a file of attackers/, with its ``Params``: its block under ``attackers:``.

    The import of the module must not import torch; import torch inside functions.
    """

    name: ClassVar[str]
    """Its key in params.yaml."""
    title: ClassVar[str]
    """The name in tables and figures."""
    source: ClassVar[str]
    """Authors, year and identifier of the work that the attack follows."""
    asks: ClassVar[Asks]
    learns: ClassVar[bool] = False
    """It has a training, which writes a checkpoint."""
    repeated: ClassVar[bool] = False
    """Chosen cells train it with several seeds (``informed.trials``)."""
    restores: ClassVar[bool] = False
    """It changes the probe with `restore` before the recognizers see it."""
    control: ClassVar[bool] = False
    """It is no attack but shows what chance gives. It never counts as the strongest attacker."""
    keys: ClassVar[Literal["per_image", "shared"]] = "per_image"
    """``per_image``: each image of the attacker has its own key; ``shared``: they and the tested images have one."""
    beside_clear: ClassVar[bool] = False
    """The naive recognizers of the protocol attack beside its own."""
    trained_as: ClassVar[str] = ""
    """Another attacker with the same training, whose checkpoint it uses; '' for its own."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path], checkpoint: Path | None = None):
        """``checkpoint``: what `train` wrote, of this attacker or of ``trained_as``; None before the training."""
        self.params, self.backbones, self.checkpoint = params, backbones, checkpoint

    @classmethod
    def applies(cls, method: "Capabilities", backbones: Collection[str]) -> bool:
        """Whether the attack is one on a method with these capabilities, which uses these ``backbones``."""
        return True

    @classmethod
    def needs(cls, params: Any) -> tuple[str, ...]:
        """The backbones that it starts from or uses, with these parameters."""
        return ()

    def train(self, training_set: "AttackerTrainingSet", job: TrainingJob) -> dict[str, float]:
        """Learn from ``training_set``, write ``job.checkpoint`` and return the figures of `quality`.

        An interrupted training goes on from ``job.state``. ``learned`` among the figures is 1 if the attack is better
        on held-out people of the attacker than without the training; else the checkpoint holds the start, and it is 0.
        A training that fails can then not look like privacy.
        """
        raise NotImplementedError(f"{type(self).__name__} does not train")

    def study(self, training_set: "AttackerTrainingSet") -> None:  # noqa: B027 - optional hook
        """Choose what the attack needs to know of the method, without a training. Called once before the attack."""

    def restore(self, images: np.ndarray) -> np.ndarray:
        """The images that the recognizers see in place of anonymized ``images``, float32 (N, 3, H, W) in [-1, 1]."""
        return images

    def recognizers(self) -> dict[str, Recognizer]:
        """Its own recognizers by name. Empty: it uses the naive recognizers of the protocol (``informed.judges``)."""
        return {}

    def compare(self, probes: np.ndarray, gallery: np.ndarray) -> np.ndarray:
        """The distances (N, M) of embeddings (N, D) and (M, D): Euclidean, unless the attacker expects another place.

        The attacker takes the person with the smallest distance.
        """
        from masquerade.attackers.study import measure_euclidean

        return measure_euclidean(probes, gallery)


BASE = Attacker
