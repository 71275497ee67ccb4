"""The attacker who names people: a recognizer that learned clear and anonymized pictures of the same people."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade.attackers._recognizing import RecognitionAttacker
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Adapted(RecognitionAttacker):
    """Learns that the clear and the anonymized pictures of a person are one person, and names anonymized people."""

    title = "Adapted"
    source = "McPherson et al. 2016, Defeating Image Obfuscation with Deep Learning (arXiv:1609.00408)"
    asks = "naming"
    repeated = True

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _recognition

        learn = lesson.learn
        both = np.concatenate([learn.clear, learn.anonymized]), np.concatenate([learn.numbers, learn.numbers])
        return _recognition.train("adapted", self.params, _recognition.Pictures(*both), lesson, linking=False, job=job)
