"""The control of chance: the adapted attacker with a gallery whose names are dealt anew."""

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers.adapted import Adapted


class Shuffled(Attacker):
    """The adapted attacker where there is nothing to find: the names of the gallery's pictures are mixed."""

    title = "Shuffled names"
    source = "our control; Hanisch et al. 2023, A False Sense of Privacy (arXiv:2304.01635) compare with chance"
    asks = "naming"
    control = True
    trained_as = "adapted"

    def recognizers(self) -> dict[str, Recognizer]:
        return Adapted(self.params, self.backbones, self.checkpoint).recognizers()
