"""Share of faces in which attacks on the key find the person, without any training."""

from collections.abc import Mapping
from typing import Any

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import attacked

ATTACKS = ("right_key", "no_attack", "guess", "any_guess", "average", "sign_flip")


class KeyAttackRate(Metric):
    """Mean over faces of [||a - e(X)||_2 < t], in [0, 1], for each attack; lower is better.

    e: the judge's embedding, (N, D). a: what the attack makes of the anonymized face: the embedding of the face
    recovered with its key (`right_key`, what the owner of the key gets), of the anonymized face itself (`no_attack`),
    of the face recovered with a random key (`guess`, the mean over keys), with the best of all random keys
    (`any_guess`), the mean embedding of the faces that several wrong keys recover (`average`), and the negative
    embedding of the anonymized face (`sign_flip`). t accepts a stated share of the pairs of strangers in the
    calibration split.
    ``<attack>.another`` is the control: the same attack, compared with the original of another person. By chance it is
    the false-accept rate, and more for `any_guess`. A method that leaks nothing has the same share in both.
    Reference: Huang et al. 2007 (LFW) for the decision; the attacks are ours (pipeline/key_attacks.py).

    >>> from dataclasses import replace
    >>> from masquerade.metrics._examples import evidence, values
    >>> share = {"value": 0.25, "over": 4, "of": 4, "draws": ""}
    >>> found = {attack: {"person": share, "another": share} for attack in ATTACKS}
    >>> facts = {"judge": "net", "far": 0.01, "keys": None, "guesses": 2, "averaged": 2, "found": found}
    >>> faces = {"net.embedding": [[1, 0]] * 4}
    >>> values(KeyAttackRate, replace(evidence(faces, faces), keys_attacked=facts))["sign_flip.another"]
    0.25
    """

    title = "share found by attacks on keys"
    direction = "lower"
    unit = "share of faces"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        facts = evidence.keys_attacked
        if facts is None:
            return {}
        if not facts["found"]:
            note = f"too few pairs of strangers for a threshold at FAR {facts['far']:g}"
            return {attack: Value(float("nan"), 0, 0, note=note) for attack in _names()}
        shares = {f"{attack}{ending}": facts["found"][attack][whom] for attack, whom, ending in _parts()}
        return {
            name: attacked(share, _note(name, facts), "no face could be measured") for name, share in shares.items()
        }


def _parts() -> list[tuple[str, str, str]]:
    """(attack, with whose original its results are compared, ending of the value's name)."""
    return [(attack, *whom) for whom in (("person", ""), ("another", ".another")) for attack in ATTACKS]


def _names() -> list[str]:
    return [f"{attack}{ending}" for attack, _, ending in _parts()]


def _note(name: str, facts: Mapping[str, Any]) -> str:
    """The protocol of one value: judge and threshold, and the keys that were tried."""
    keys = f"{facts['keys']:,}" if facts["keys"] else "2^256"
    guesses = f", {facts['guesses']} random keys of {keys} keys"
    tried = {"guess": guesses, "any_guess": guesses, "average": f", {facts['averaged']} wrong keys"}
    return f"{facts['judge']} at FAR {facts['far']:g}{tried.get(name.partition('.')[0], '')}"
