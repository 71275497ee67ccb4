"""Share of anonymized faces that are judged to be of the same gender as their original."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, share


class GenderPreservation(Metric):
    """Mean over faces of [(p(X) > 0.5) = (p(X') > 0.5)], in [0, 1]; higher is better.

    p: the judge's probability of "male", (N,).
    Reference: Wen et al. 2022 (IdentityDP), section I, names gender as an attribute to keep; the measure is ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(GenderPreservation, evidence({"net.male": [0.9, 0.2]}, {"net.male": [0.6, 0.7]}))  # kept, changed
    {'net': 0.5}
    """

    title = "gender preservation"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values = {}
        for judge in judges_with(evidence, "male"):
            original, derived = evidence.pair(f"{judge}.male")
            measured = np.isfinite(original) & np.isfinite(derived)
            kept = np.where(measured, (original > 0.5) == (derived > 0.5), np.nan)
            values[judge] = share(kept, evidence.weights)
        return values
