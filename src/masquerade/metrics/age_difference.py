"""Difference in age between each original and its anonymized face."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean


class AgeDifference(Metric):
    """Mean over faces of |age(X) - age(X')| in years, at least 0; lower is better.

    ``age``: (N,), one number a face, by a network that no method is trained with.
    Reference: Wen et al. 2022 (IdentityDP), section I, names age as an attribute to keep; the measure is ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(AgeDifference, evidence({"net.age": [30, 40]}, {"net.age": [33, 39]}))  # (3 + 1) / 2
    {'net': 2.0}
    """

    title = "age difference"
    direction = "lower"
    unit = "years"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        pairs = {judge: evidence.pair(f"{judge}.age") for judge in judges_with(evidence, "age")}
        return {
            judge: mean(np.abs(original - derived), evidence.weights) for judge, (original, derived) in pairs.items()
        }
