"""The base of the attackers who train a recogniser."""

from masquerade.attackers import Attacker, Recogniser
from masquerade.attackers._parameters import RecognitionParams


class RecognitionAttacker(Attacker):
    """An attacker who trains a recogniser. A subclass chooses its pictures in `train`."""

    learns = True

    Params = RecognitionParams
    params: RecognitionParams

    @classmethod
    def needs(cls, params: RecognitionParams) -> tuple[str, ...]:
        return (params.start,)

    def recognisers(self) -> dict[str, Recogniser]:
        from masquerade.attackers import _recognition

        assert self.checkpoint is not None
        return {"own": _recognition.loaded(self.checkpoint)}
