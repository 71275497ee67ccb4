"""The attack on cloaks: does a gallery of protected pictures fail on a later, clear photograph of the person?"""

from typing import TYPE_CHECKING

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers.adapted import Adapted
from masquerade.core.settings import NoParameters

if TYPE_CHECKING:
    from masquerade.methods import Capabilities

BASELINE = "identity"
"""The backbone against which Fawkes computes its cloak."""


class Poisoned(Attacker):
    """Each person in turn has protected pictures in a gallery of clear ones, and is looked up by a clear picture.

    ``identity`` is the recognizer against which the cloak was computed (baseline). The clear recognizers of the
    protocol are others, as a newer service would have them. ``adaptive`` learned protected pictures of other people.
    """

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
        return method.poisons or method.control  # a gallery of clear pictures shows what fails without a protection

    def recognizers(self) -> dict[str, Recognizer]:
        from masquerade.attackers import _recognition

        (own,) = Adapted(self.params, self.backbones, self.checkpoint).recognizers().values()
        return {BASELINE: _recognition.clear(BASELINE, self.backbones[BASELINE]), "adaptive": own}
