"""How near an attacker who restores faces comes to the originals."""

import numpy as np

from masquerade.metrics import Evidence, Value
from masquerade.metrics._attacks import (
    AttackMetric,
    Probes,
    add_note,
    list_restorations,
    mean_of_restored,
    measure_restored,
    refuse,
)
from masquerade.metrics._values import share


class RestoredPsnr(AttackMetric):
    """Mean over probes of the PSNR of the restored image to the original in dB, at least 0; lower is better.

    PSNR = 10 log10(255^2 / MSE) of 8-bit RGB, ``psnr`` (N,). Parts: each attacker that restores, and ``anonymized``,
    the images before the restoration. An attacker above that brings the face back. Identical images have an
    infinite PSNR and are left out.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["restoring"] * 2, "ssim": [0.5, 0.5], "psnr": [20.0, 30.0]}
    >>> values(RestoredPsnr, attack_evidence(answers | {"before_psnr": [18.0, float("inf")]}))
    {'restoring': 25.0, 'anonymized': 18.0}
    """

    name = "restored_psnr"
    title = "peak signal-to-noise ratio of restored faces"
    unit = "dB"
    quantity = "psnr"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return measure_restored(evidence, self.quantity)


class RestoredSsim(RestoredPsnr):
    """Mean over probes of the SSIM of the restored image and the original, in [-1, 1]; lower is better.

    ``ssim``: (N,), as in `ssim`. Parts: each attacker that restores, and ``anonymized``, the images before the
    restoration. An attacker above that brings the face back.
    Reference: Wang et al. 2004; Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["restoring"] * 2, "ssim": [0.5, 0.7], "before_ssim": [0.4, 0.4]}
    >>> values(RestoredSsim, attack_evidence(answers))
    {'restoring': 0.6, 'anonymized': 0.4}
    """

    name = "restored_ssim"
    title = "structural similarity of restored faces"
    unit = "index"
    quantity = "ssim"


class RestoredSimilarity(AttackMetric):
    """Mean over probes of cos(e(R), e(X)) of the restored image R and the original X, in [-1, 1]; lower is better.

    ``similarity``: (N,), of embeddings e (N, D). Parts: ``<recognizer>.<attacker>``, and ``<recognizer>.anonymized``
    before the restoration.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["restoring"] * 2, "recognizer": ["net"] * 2, "ssim": [0.5, 0.7]}
    >>> answers |= {"similarity": [0.6, 0.8], "before_similarity": [0.1, 0.3]}
    >>> values(RestoredSimilarity, attack_evidence(answers))
    {'net.restoring': 0.7, 'net.anonymized': 0.2}
    """

    name = "restored_similarity"
    title = "identity similarity of restored faces"
    unit = "cosine"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        restored, before = {}, {}
        for attack in list_restorations(evidence):
            restored[f"{attack.recognizer}.{attack.attacker}"] = mean_of_restored(attack, "similarity")
            name = f"{attack.recognizer}.anonymized"
            before[name] = before.get(name) or mean_of_restored(attack, "before_similarity")
        return restored | before


class RestoredNearer(AttackMetric):
    """Mean over probes of [cos(e(R), e(X)) > cos(e(X'), e(X))], in [0, 1]; lower is better.

    X: the original, X': the anonymized image, R: the restored one; ``similarity`` and ``before_similarity`` (N,) are
    the two cosines of embeddings e (N, D). A restoration that changes the image at random has about 0.5 or less.
    Parts: ``<recognizer>.<attacker>``.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face; the share is ours.

    >>> from masquerade.metrics._examples import attack_evidence, values
    >>> answers = {"attacker": ["restoring"] * 2, "recognizer": ["net"] * 2, "ssim": [0.5, 0.7]}
    >>> values(RestoredNearer, attack_evidence(answers | {"similarity": [0.6, 0.2], "before_similarity": [0.1, 0.3]}))
    {'net.restoring': 0.5}
    """

    name = "restored_nearer"
    title = "faces that a restoration brings nearer to the original"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {
            f"{attack.recognizer}.{attack.attacker}": add_note(attack, attack.over_trainings(_nearer), "")
            for attack in list_restorations(evidence)
        }


def _nearer(probes: Probes) -> Value:
    after, before = probes.numbers("similarity"), probes.numbers("before_similarity")
    measured = np.isfinite(after) & np.isfinite(before)
    if measured.any() and (after == before)[measured].all():
        return refuse(probes, "the attacker left every image as it was")
    return share(np.where(measured, after > before, np.nan), probes.weights)
