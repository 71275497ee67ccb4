"""Attackers who recognize people: with recognizers of unprotected faces, or of faces that a method changed."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers._parameters import RecognitionParams
from masquerade.core.settings import NoParameters
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study import AttackerTrainingSet
    from masquerade.methods import Capabilities


class RecognitionAttacker(Attacker):
    """An attacker who trains a recognizer. A subclass chooses its images in `train`."""

    learns = True

    Params = RecognitionParams
    params: RecognitionParams

    @classmethod
    def needs(cls, params: RecognitionParams) -> tuple[str, ...]:
        return (params.start,)

    def recognizers(self) -> dict[str, Recognizer]:
        from masquerade.attackers import _recognition

        assert self.checkpoint is not None
        return {"own": _recognition.load_recognizer(self.checkpoint)}


class Naive(Attacker):
    """Compares anonymized images with unprotected ones as they are. It knows nothing of the method."""

    name = "naive"
    title = "Naive"
    source = "Newton et al. 2005, Preserving privacy by de-identifying face images (naive recognition)"
    asks = "naming"


class Adapted(RecognitionAttacker):
    """Learns that the clear and the anonymized images of a person are one person, and names anonymized people."""

    name = "adapted"
    title = "Adapted"
    source = "McPherson et al. 2016, Defeating Image Obfuscation with Deep Learning (arXiv:1609.00408)"
    asks = "naming"
    repeated = True

    def train(self, training_set: "AttackerTrainingSet", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _recognition

        learn = training_set.learn
        both = np.concatenate([learn.clear, learn.anonymized]), np.concatenate([learn.numbers, learn.numbers])
        return _recognition.train(
            "adapted", self.params, _recognition.Pictures(*both), training_set, linking=False, job=job
        )


class Parrot(RecognitionAttacker):
    """Learns to tell people apart by their anonymized images, and links two of them to one person.

    A method that gives each person one fixed pseudonym is linked always, by design.
    """

    name = "parrot"
    title = "Parrot"
    source = "Newton et al. 2005, Preserving privacy by de-identifying face images (parrot recognition)"
    asks = "linking"

    def train(self, training_set: "AttackerTrainingSet", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _recognition

        pictures = _recognition.Pictures(training_set.learn.anonymized, training_set.learn.numbers)
        return _recognition.train("parrot", self.params, pictures, training_set, linking=True, job=job)


class Insider(Adapted):
    """As the adapted attacker, on a method with keys: its images and the tested images have one common key.

    It does not recover the face with the key, which the right key does by design (docs/recovery.md).
    """

    name = "insider"
    title = "Insider"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651): the attacker knows the anonymization and its parameters"
    repeated = False
    keys = "shared"

    @classmethod
    def applies(cls, method: "Capabilities") -> bool:
        return method.keys is not None


class Shuffled(Attacker):
    """The adapted attacker where there is nothing to find: the names of the gallery's images are mixed."""

    name = "shuffled"
    title = "Shuffled names"
    source = "our control; Hanisch et al. 2023, A False Sense of Privacy (arXiv:2304.01635) compare with chance"
    asks = "naming"
    control = True
    trained_as = "adapted"

    def recognizers(self) -> dict[str, Recognizer]:
        return Adapted(self.params, self.backbones, self.checkpoint).recognizers()


BASELINE = "identity"
"""The backbone against which Fawkes computes its cloak."""


class Poisoned(Attacker):
    """Each person in turn has protected images in a gallery of unprotected ones, and is sought by an unprotected image.

    ``identity`` is the recognizer against which the cloak was computed (baseline). The naive recognizers of the
    protocol are others, as a newer service would have them. ``adaptive`` learned protected images of other people.
    """

    name = "poisoned"
    title = "Poisoned gallery"
    source = "Radiya-Dixit et al. 2022, Data Poisoning Won't Save You From Facial Recognition (arXiv:2106.14851)"
    asks = "protecting"
    beside_clear = True
    trained_as = "adapted"

    @classmethod
    def needs(cls, params: NoParameters) -> tuple[str, ...]:
        return (BASELINE,)

    @classmethod
    def applies(cls, method: "Capabilities") -> bool:
        return method.poisons or method.control  # a gallery of unprotected images shows what fails without a protection

    def recognizers(self) -> dict[str, Recognizer]:
        from masquerade.attackers import _recognition

        (own,) = Adapted(self.params, self.backbones, self.checkpoint).recognizers().values()
        return {BASELINE: _recognition.load_clear(BASELINE, self.backbones[BASELINE]), "adaptive": own}
