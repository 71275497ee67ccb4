"""Structural similarity of the faces that an attacker restores from anonymized ones."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import restored_pictures


class RestoredSsim(Metric):
    """Mean over probes of the SSIM of the restored picture and the original, in [-1, 1]; lower is better.

    ``ssim``: (N,), as in `ssim`. Parts: each attacker that restores, and ``anonymized``, the pictures before the
    restoration. An attacker above that brings the face back.
    Reference: Wang et al. 2004; Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["restoring"] * 2, "ssim": [0.5, 0.7], "before_ssim": [0.4, 0.4]}
    >>> values(RestoredSsim, attacked(answers))
    {'restoring': 0.6, 'anonymized': 0.4}
    """

    title = "structural similarity of restored faces"
    direction = "lower"
    unit = "index"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return restored_pictures(evidence, "ssim")
