"""The judge around a network that was trained here (backbones.smk)."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from masquerade import discovery
from masquerade.errors import CheckpointError
from masquerade.judges import Judge
from masquerade.judges._preparing import piecewise
from masquerade.settings import Settings


class TrainedJudge(Judge):
    """Loads the backbone named in ``needs`` as ``_network`` and shows it few pictures at a time.

    Preprocessing: none but the image contract; the backbone takes RGB in [-1, 1] at any size and brings it to its own.
    Raises CheckpointError where the backbone's checkpoint was not given.
    """

    needs: ClassVar[tuple[str]]
    packages = ("torch",)

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (name,) = self.needs
        if name not in backbones:
            raise CheckpointError(f"The judge '{name}' needs the checkpoint of the backbone '{name}': build it first.")
        self._network = discovery.load("backbones", name).load(backbones[name])

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    @abstractmethod
    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """What is measured of a few pictures."""
