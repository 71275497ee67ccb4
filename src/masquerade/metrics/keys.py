"""The identities that keys give: different keys to one face, one key to different people, and attacks on keys."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from masquerade.core.face_tables import stack
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between_versions, judges_with, read_attack_value, unit


class KeySimilarity(Metric):
    """Mean over faces of the mean cosine <e, e'> over all pairs of a face's versions, in [-1, 1]; lower is better.

    e: the judge's embedding at unit length, (N, D). The versions of a face are its images under different keys: its
    anonymized image, and its images under further keys (the attempts `key`). A method that draws random numbers
    and takes no key has further draws in their place (the attempts `view.draw.<n>`). For the attempts `wrong` they are
    the faces that different wrong keys recover. A low value means that the keys lead to different people. The value is
    NaN if no face has two versions.
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (second term) and section 4.4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> first, second = {"net.embedding": [[1, 0]]}, {"net.embedding": [[3, 4]], "attempt": ["key"]}
    >>> values(KeySimilarity, evidence(first, first, recoveries=second))  # 3 / 5
    {'net': 0.6}
    """

    name = "key_similarity"
    title = "similarity between keys"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge) for judge in judges_with(evidence, "embedding")}


class KeyAngle(Metric):
    """Mean over faces of the mean angle arccos<e, e'> over all pairs of a face's versions, in [0, 180] degrees.

    Higher is better. e: the judge's embedding at unit length, (N, D). Versions are those of `key_similarity`. Two
    random directions are 90 degrees apart. KFFA is the known factor feature angle: the known factor is the face, and
    its key varies.
    Reference: Li et al. 2022, ECCV (Contrastive Learning for Diverse Disentangled Foreground Generation); Yuan et al.
    2025 (iFADIT), section 4.4, Table 4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> first, second = {"net.embedding": [[1, 0]]}, {"net.embedding": [[0, 1]], "attempt": ["key"]}
    >>> values(KeyAngle, evidence(first, first, recoveries=second))
    {'net': 90.0}
    """

    name = "key_angle"
    title = "angle between keys (KFFA)"
    direction = "higher"
    unit = "degrees"
    digits = 2

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: between_versions(evidence, judge, _angles) for judge in judges_with(evidence, "embedding")}


def _angles(cosines: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))


class PeopleSimilarity(Metric):
    """Mean of cos(e(X'_i), e(X'_j)) over all pairs of anonymized faces of different people under one key, in [-1, 1].

    Lower is better: a high value means that different people look alike when they are anonymized. e: the judge's
    embedding at unit length, (N, D). Images under one key are the attempts `key` with one ``number``. Where there are
    none, each anonymized image has its own key or needs none, and the pairs are those of all images. Faces without
    a known identity ('') are in no pair. The mean is computed from sums of e, which is exact:
    (|sum e|^2 - sum over people p of |sum_p e|^2) / (N^2 - sum over p of n_p^2).
    Reference: Yuan et al. 2025 (iFADIT), Eq. 17 (first term).

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces = {"net.embedding": [[1, 0], [0, 1], [1, 0]]}  # cosines of the three pairs: 0, 0, 1
    >>> values(PeopleSimilarity, evidence(faces, faces))
    {'net': 0.3333}
    """

    name = "people_similarity"
    title = "similarity between people"
    direction = "lower"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            judge: _people_similarity(evidence, f"{judge}.embedding") for judge in judges_with(evidence, "embedding")
        }


def _people_similarity(evidence: Evidence, column: str) -> Value:
    faces = evidence.derived
    if evidence.recoveries is not None and column in evidence.recoveries:  # attempts may be measured by fewer judges
        under_one_key = evidence.recoveries[evidence.recoveries["attempt"] == "key"]
        faces = faces if under_one_key.empty else under_one_key
    names, embeddings = faces["identity"].to_numpy(), unit(stack(faces[column]))
    keys = faces["number"].to_numpy() if "number" in faces else np.zeros(len(faces))
    measured = np.isfinite(embeddings).all(axis=1) & (names != "")
    total, pairs, draws, pairs_of_draws = 0.0, 0, np.zeros(evidence.draws), np.zeros(evidence.draws)
    for key in np.unique(keys[measured]):
        rows = measured & (keys == key)
        people, positions, counts = np.unique(names[rows], return_inverse=True, return_counts=True)
        sums = np.zeros((len(people), embeddings.shape[1]))
        np.add.at(sums, positions, embeddings[rows])
        total += (sums.sum(axis=0) ** 2).sum() - (sums**2).sum()
        pairs += int(counts.sum() ** 2 - (counts**2).sum())  # each pair counts twice: (i, j) and (j, i)
        times = evidence.weights_of(people)
        draws += ((times @ sums) ** 2).sum(axis=1) - times**2 @ (sums**2).sum(axis=1)
        pairs_of_draws += (times @ counts) ** 2 - times**2 @ counts**2
    if not pairs:
        return Value(float("nan"), 0, len(names), note="no two people could be measured")
    draws = np.divide(draws, pairs_of_draws, out=np.full_like(draws, np.nan), where=pairs_of_draws > 0)
    note = f"{pairs // 2} pairs of different people"
    return Value(float(total / pairs), int(measured.sum()), len(names), note=note, draws=draws)


ATTACKS = ("right_key", "no_attack", "guess", "any_guess", "average", "sign_flip")


class KeyAttackRate(Metric):
    """Mean over faces of [||a - e(X)||_2 < t], in [0, 1], for each attack; lower is better.

    e: the judge's embedding, (N, D). a: what the attack makes of the anonymized face: the embedding of the face
    recovered with its key (`right_key`, what the owner of the key gets), of the anonymized face itself (`no_attack`),
    of the face recovered with a random key (`guess`, the mean over keys), with the best of all random keys
    (`any_guess`), the mean embedding of the faces that several wrong keys recover (`average`), and the negative
    embedding of the anonymized face (`sign_flip`). t accepts a stated share of the pairs of strangers in the
    calibration split, and each bootstrap sample has its own.
    ``<attack>.another`` is the control: the same attack, compared with the original of another person. By chance it is
    the false-accept rate, and more for `any_guess`. A method that leaks nothing has the same share in both.
    Reference: Huang et al. 2007 (LFW) for the decision; the attacks are ours (pipeline/key_attacks.py).

    >>> from dataclasses import replace
    >>> from masquerade.metrics._examples import evidence, values
    >>> share = {"value": 0.25, "over": 4, "of": 4, "people": 4, "draws": ""}
    >>> found = {attack: {"person": share, "another": share} for attack in ATTACKS}
    >>> facts = {"judge": "net", "threshold": "threshold 1.1", "keys": None, "guesses": 2, "averaged": 2}
    >>> faces = {"net.embedding": [[1, 0]] * 4}
    >>> values(KeyAttackRate, replace(evidence(faces, faces), keys_attacked=facts | {"found": found}))["guess.another"]
    0.25
    """

    name = "key_attack_rate"
    title = "share found by attacks on keys"
    direction = "lower"
    unit = "share of faces"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        facts = evidence.keys_attacked
        if facts is None:
            return {}
        names = {(attack, whom): attack if whom == "person" else f"{attack}.{whom}"
                 for whom in ("person", "another") for attack in ATTACKS}  # fmt: skip
        if not facts["found"]:
            note = f"too few pairs of strangers for a threshold at FAR {facts['far']:g}"
            return dict.fromkeys(names.values(), Value(float("nan"), 0, 0, note=note))
        return {
            name: read_attack_value(facts["found"][attack][whom], _describe(attack, facts), "no face could be measured")
            for (attack, whom), name in names.items()
        }


def _describe(attack: str, facts: Mapping[str, Any]) -> str:
    """The protocol of one value: judge, the keys that were tried, and the threshold."""
    keys = f"{facts['keys']:,}" if facts["keys"] else "2^256"
    guesses = f", {facts['guesses']} random keys of {keys} keys"
    tried = {"guess": guesses, "any_guess": guesses, "average": f", {facts['averaged']} wrong keys"}
    return f"{facts['judge']}{tried.get(attack, '')}, {facts['threshold']}"


LINKED_SETS = ("originals", "own_keys", "one_key", "shuffled")


class LinkageAuc(Metric):
    """P(||e(X_i) - e(X_j)|| < ||e(X_k) - e(X_l)||), in [0, 1]; lower is better, and 0.5 is chance.

    i, j: two images of one person. k, l: images of two people. e: the judge's embedding, (N, D). A tie counts half.
    That is the area under the ROC curve. The images X are the `originals` (what can be linked without anonymization),
    anonymized with a key each (`own_keys`), and anonymized under one key (`one_key`). `shuffled` is the control: the
    images under one key belong to people at random. ``over`` of ``of`` pairs of one person were measured.
    Reference: ours; no paper links images. Hanley and McNeil 1982 (the area). pipeline/key_attacks.py compares the
    images, this module reads what it found.

    >>> from dataclasses import replace
    >>> from masquerade.metrics._examples import evidence, values
    >>> linked = {name: {"value": 0.75, "over": 3, "of": 3, "people": None, "draws": ""} for name in LINKED_SETS}
    >>> faces = {"net.embedding": [[1, 0]] * 4}
    >>> values(LinkageAuc, replace(evidence(faces, faces), keys_attacked={"judge": "net", "linked": linked}))["one_key"]
    0.75
    """

    name = "linkage_auc"
    title = "images of one person linked"
    direction = "lower"
    unit = "share of comparisons"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        facts = evidence.keys_attacked
        if facts is None:
            return {}
        note, missing = f"distances by {facts['judge']}", "nobody has two images, or all show one person"
        return {name: read_attack_value(facts["linked"][name], note, missing) for name in LINKED_SETS}
