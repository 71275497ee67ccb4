"""The base class of the judges with a network that was trained here (backbones.smk)."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import folded, piecewise, place

AT_ONCE = 32
"""Pictures in a batch. These networks are small, and most of a small batch's time would be spent on calls."""


class TrainedJudge(Judge):
    """Loads the backbone in ``needs`` as ``_network`` and runs it, `folded`, on ``AT_ONCE`` pictures at a time.

    Preprocessing: none beyond the image contract. The backbone takes RGB in [-1, 1] at any size and resizes it.
    Raises CheckpointError if the checkpoint of the backbone is not given.
    """

    needs: ClassVar[tuple[str]]
    packages = ("torch",)

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (name,) = self.needs
        if name not in backbones:
            raise CheckpointError(f"The judge '{name}' needs the checkpoint of the backbone '{name}': build it first.")
        self._network = place(folded(discovery.load("backbones", name).load(backbones[name])))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images, at_once=AT_ONCE)

    @abstractmethod
    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """The quantities of a few pictures."""
