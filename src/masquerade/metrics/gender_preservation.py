"""How many anonymized faces are still judged to be of the same gender."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean


class GenderPreservation(Metric):
    """Share of faces whose more probable gender is that of their original, in [0, 1].

    Reference: the attribute is one of those that Wen et al. 2022 (IdentityDP) want kept (section I); our measure.
    """

    title = "gender preservation"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        found = {}
        for judge in judges_with(evidence, "male"):
            original, derived = evidence.pair(f"{judge}.male")
            seen = np.isfinite(original) & np.isfinite(derived)
            kept = mean(np.where(seen, (original > 0.5) == (derived > 0.5), np.nan))
            found[judge] = Value(kept.value, kept.over, kept.of, note=kept.note)
        return found
