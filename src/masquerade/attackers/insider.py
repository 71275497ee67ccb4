"""The attacker who has the key: it adapts to pictures under the very key of the tested people."""

from typing import TYPE_CHECKING

from masquerade.attackers.adapted import Adapted

if TYPE_CHECKING:
    from masquerade.methods import Capabilities


class Insider(Adapted):
    """As the adapted attacker, on a method with keys: its pictures and the tested pictures have one common key.

    It does not recover the face with the key, which the right key does by design (docs/recovery.md).
    """

    title = "Insider"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651): the attacker knows the anonymization and its parameters"
    repeated = False
    keys = "one"

    @classmethod
    def applies(cls, method: "Capabilities") -> bool:
        return method.keys is not None
