"""The attacker who brings faces back: a network that learnt to undo the method."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker
from masquerade.core.settings import Channels, Settings
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers._lessons import Lesson


class Restoring(Attacker):
    """A U-Net from the anonymized picture to the clear one, and then the clear recognisers, which it never saw."""

    title = "Restoring"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651), with networks trained on pairs"
    asks = "naming"
    learns = True
    restores = True

    class Params(Settings):
        widths: Annotated[list[Channels], Field(min_length=2)]
        """Channels of the U-Net at each size, from the finest to the coarsest."""
        steps: Annotated[int, Field(ge=1)]
        """Batches."""
        batch: Annotated[int, Field(ge=2)]
        """Pictures in a batch."""
        learning_rate: Annotated[float, Field(gt=0)]
        """Largest learning rate of Adam; it rises over the first tenth of the steps and falls as a cosine."""
        kernel_rate: Annotated[float, Field(ge=0)]
        """Largest learning rate of Muon, for the kernels (0: Adam for these too)."""
        edges: Annotated[float, Field(ge=0)]
        """Weight of the mean absolute error of neighbouring pixels' differences, beside that of the pixels."""

    params: Params

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _restoration

        return _restoration.train(self.params, lesson, job)

    def restore(self, images: np.ndarray) -> np.ndarray:
        from masquerade.attackers import _restoration

        assert self.checkpoint is not None
        return _restoration.loaded(self.checkpoint)(images)
