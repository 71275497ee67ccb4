"""The attacker who has the key: it adapts to pictures under the very key of the tested people."""

from typing import TYPE_CHECKING

from masquerade.attackers import Attacker, Recogniser
from masquerade.attackers._parameters import RecognitionParams
from masquerade.attackers.adapted import Adapted
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson
    from masquerade.methods import Capabilities


class Insider(Attacker):
    """As the adapted attacker, on a method with keys: its pictures and the tested pictures have one common key.

    It does not recover the face with the key, which the right key does by design (docs/recovery.md).
    """

    title = "Insider"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651): the attacker knows the anonymization and its parameters"
    asks = "naming"
    learns = True
    keys = "one"

    Params = RecognitionParams
    params: RecognitionParams

    @classmethod
    def needs(cls, params: RecognitionParams) -> tuple[str, ...]:
        return (params.start,)

    @classmethod
    def applies(cls, method: "Capabilities") -> bool:
        return method.keys is not None

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        return Adapted(self.params, self.backbones).train(lesson, job)

    def recognisers(self) -> dict[str, Recogniser]:
        return Adapted(self.params, self.backbones, self.checkpoint).recognisers()
