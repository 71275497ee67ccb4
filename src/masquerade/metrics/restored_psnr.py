"""Peak signal-to-noise ratio of the faces that an attacker restores from anonymized ones."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import restored_pictures


class RestoredPsnr(Metric):
    """Mean over probes of the PSNR of the restored picture to the original in dB, at least 0; lower is better.

    PSNR = 10 log10(255^2 / MSE) of 8-bit RGB, ``psnr`` (N,). Parts: each attacker that restores, and ``anonymized``,
    the pictures before the restoration. An attacker above that brings the face back. Identical pictures have an
    infinite PSNR and are left out.
    Reference: Todt et al. 2022 (Fantomas, arXiv:2210.10651), attackers who restore the face.

    >>> from masquerade.metrics._examples import attacked, values
    >>> answers = {"attacker": ["restoring"] * 2, "ssim": [0.5, 0.5], "psnr": [20.0, 30.0]}
    >>> values(RestoredPsnr, attacked(answers | {"before_psnr": [18.0, float("inf")]}))
    {'restoring': 25.0, 'anonymized': 18.0}
    """

    title = "peak signal-to-noise ratio of restored faces"
    direction = "lower"
    unit = "dB"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return restored_pictures(evidence, "psnr")
