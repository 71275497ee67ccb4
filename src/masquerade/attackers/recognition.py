"""Attackers who recognize people: with recognizers of unprotected faces, or of faces that a method changed."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers._parameters import RecognitionParams
from masquerade.core.images import to_float
from masquerade.core.settings import NoParameters, Settings
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
    def applies(cls, method: "Capabilities", backbones: Collection[str]) -> bool:
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
"""The backbone in the losses of methods. Fawkes computes its cloak against it, too."""


class Margin(Attacker):
    """Identifies the person whose cosine with the anonymized image is nearest to the one that the method leaves.

    A loss that drives the cosine of original and result to a margin m, or a rotation by a known angle, hides the
    person from whoever seeks the nearest embedding and shows the person to whoever seeks m. The attacker has the
    network in the loss. The gallery has other images of the person than the one that was anonymized, whose cosines lie
    around m. The attacker therefore tries cosines on its own people and takes the one that separates them from
    strangers best. The cosine 1 finds the nearest embedding, and -1 the farthest one.
    """

    name = "margin"
    title = "Margin"
    source = "ours; it reverses Eq. 2 of Barattin et al. 2023, FALCO (arXiv:2303.11296)"
    asks = "naming"

    class Params(Settings):
        cosines: Annotated[list[Annotated[float, Field(ge=-1, le=1)]], Field(min_length=1)]
        """Cosines of two identity embeddings that the attacker tries."""

    params: Params

    @classmethod
    def applies(cls, method: "Capabilities", backbones: Collection[str]) -> bool:
        return BASELINE in backbones or method.control

    @classmethod
    def needs(cls, params: Params) -> tuple[str, ...]:
        return (BASELINE,)

    def study(self, training_set: "AttackerTrainingSet") -> None:
        from masquerade.attackers.study import EmbeddingSet, measure_distances, measure_separability

        learn = training_set.learn
        probes, gallery = (
            EmbeddingSet(self._embed(to_float(images)), learn.people, learn.ids)
            for images in (learn.anonymized, learn.clear)
        )

        def separate(cosine: float) -> float:
            self._cosine = cosine
            return measure_separability(measure_distances(probes, gallery, compare=self.compare))

        self._cosine = max(self.params.cosines, key=separate)

    def recognizers(self) -> dict[str, Recognizer]:
        return {BASELINE: self._embed}

    def compare(self, probes: np.ndarray, gallery: np.ndarray) -> np.ndarray:
        """How far the cosines of unit vectors (N, D) and (M, D) are from the one that `study` chose, (N, M)."""
        return np.abs(probes @ gallery.T - self._cosine)

    @cached_property
    def _embed(self) -> Recognizer:
        from masquerade.attackers import _recognition

        return _recognition.load_clear(BASELINE, self.backbones[BASELINE])


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
    def applies(cls, method: "Capabilities", backbones: Collection[str]) -> bool:
        return method.poisons or method.control  # a gallery of unprotected images shows what fails without a protection

    def recognizers(self) -> dict[str, Recognizer]:
        from masquerade.attackers import _recognition

        (own,) = Adapted(self.params, self.backbones, self.checkpoint).recognizers().values()
        return {BASELINE: _recognition.load_clear(BASELINE, self.backbones[BASELINE]), "adaptive": own}
