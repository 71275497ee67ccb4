"""The attacker who brings faces back: a network that learned to undo the method."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade.attackers import Attacker
from masquerade.attackers._parameters import RestorationParams
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Restoring(Attacker):
    """A U-Net from the anonymized picture to the clear one, and then the clear recognizers, which it never saw."""

    title = "Restoring"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651), with networks trained on pairs"
    asks = "naming"
    learns = True
    restores = True

    Params = RestorationParams
    params: RestorationParams

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _restoration

        return _restoration.train(self.params, lesson, job)

    def restore(self, images: np.ndarray) -> np.ndarray:
        from masquerade.attackers import _restoration

        assert self.checkpoint is not None
        return _restoration.loaded(self.checkpoint)(images)
