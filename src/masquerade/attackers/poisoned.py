"""The attack on cloaks: does a gallery of protected pictures fail on a later, clear photograph of the person?"""

from typing import TYPE_CHECKING

from masquerade.attackers import Attacker, Recogniser
from masquerade.attackers.adapted import Adapted

if TYPE_CHECKING:
    from masquerade.methods import Capabilities


class Poisoned(Attacker):
    """Each person in turn has protected pictures in a gallery of clear ones, and is looked up by a clear picture.

    ``identity`` is the recogniser against which the cloak was computed (baseline). ``recogniser_a`` and
    ``recogniser_b`` are others, as a newer service would have them. ``adaptive`` learnt from protected pictures of
    other people.
    """

    title = "Poisoned gallery"
    source = "Radiya-Dixit et al. 2022, Data Poisoning Won't Save You From Facial Recognition (arXiv:2106.14851)"
    asks = "protecting"
    needs = ("identity", "recogniser_a", "recogniser_b")
    trained_as = "adapted"

    @classmethod
    def applies(cls, method: "Capabilities") -> bool:
        return method.poisons

    def recognisers(self) -> dict[str, Recogniser]:
        from masquerade.attackers import _recognition

        clear = {name: _recognition.clear(name, path) for name, path in self.backbones.items() if name in self.needs}
        (own,) = Adapted(self.params, self.backbones, self.checkpoint).recognisers().values()
        return {**clear, "adaptive": own}
