"""The base of the attackers who train a recognizer."""

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers._parameters import RecognitionParams


class RecognitionAttacker(Attacker):
    """An attacker who trains a recognizer. A subclass chooses its pictures in `train`."""

    learns = True

    Params = RecognitionParams
    params: RecognitionParams

    @classmethod
    def needs(cls, params: RecognitionParams) -> tuple[str, ...]:
        return (params.start,)

    def recognizers(self) -> dict[str, Recognizer]:
        from masquerade.attackers import _recognition

        assert self.checkpoint is not None
        return {"own": _recognition.loaded(self.checkpoint)}
