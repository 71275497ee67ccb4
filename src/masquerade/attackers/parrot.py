"""The attacker who links published pictures: a recognizer that learned anonymized pictures alone."""

from typing import TYPE_CHECKING

from masquerade.attackers._recognizing import RecognitionAttacker
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Parrot(RecognitionAttacker):
    """Learns to tell people apart by their anonymized pictures, and links two of them to one person.

    A method that gives each person one fixed pseudonym is linked always, by design.
    """

    title = "Parrot"
    source = "Newton et al. 2005, Preserving privacy by de-identifying face images (parrot recognition)"
    asks = "linking"

    def train(self, lesson: "Lesson", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _recognition

        pictures = _recognition.Pictures(lesson.learn.anonymized, lesson.learn.numbers)
        return _recognition.train("parrot", self.params, pictures, lesson, linking=True, job=job)
