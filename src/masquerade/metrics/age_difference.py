"""By how many years the anonymized face looks older or younger."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean


class AgeDifference(Metric):
    """Mean over faces of |age(X) - age(X')| in years, as judged by a network that nothing here was trained with.

    Reference: the attribute is one of those that Wen et al. 2022 (IdentityDP) want kept (section I); our measure.
    """

    title = "age difference"
    direction = "lower"
    unit = "years"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.age") for judge in judges_with(evidence, "age")}
        return {judge: mean(np.abs(original - derived)) for judge, (original, derived) in pairs.items()}
