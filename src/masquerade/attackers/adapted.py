"""The attacker who names people: a recogniser that learnt clear and anonymized pictures of the same people."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade.attackers import Attacker, Recogniser
from masquerade.attackers._parameters import RecognitionParams
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Adapted(Attacker):
    """Learns that the clear and the anonymized pictures of a person are one person, and names anonymized people."""

    title = "Adapted"
    source = "McPherson et al. 2016, Defeating Image Obfuscation with Deep Learning (arXiv:1609.00408)"
    asks = "naming"
    learns = True
    repeated = True

    Params = RecognitionParams
    params: RecognitionParams

    @classmethod
    def needs(cls, params: RecognitionParams) -> tuple[str, ...]:
        return (params.start,)

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _recognition

        learn = lesson.learn
        both = np.concatenate([learn.clear, learn.anonymized]), np.concatenate([learn.numbers, learn.numbers])
        return _recognition.train("adapted", self.params, _recognition.Pictures(*both), lesson, linking=False, job=job)

    def recognisers(self) -> dict[str, Recogniser]:
        from masquerade.attackers import _recognition

        assert self.checkpoint is not None
        return {"own": _recognition.loaded(self.checkpoint)}
