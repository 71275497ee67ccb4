"""Share of clear faces that a detector finds which learned from anonymized faces."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import of_twins
from masquerade.metrics._values import share


class TwinDetectionRate(Metric):
    """Mean over clear test pictures of [the detector's best cell holds the face], in [0, 1]; higher is better.

    ``found``: (N,), 1 or 0. The detector never saw a clear picture, so a high rate says that anonymized pictures can
    replace clear ones in its training.
    Reference: Klemp et al. 2023 (LDFA) and Hukkelås and Lindseth 2023 (arXiv:2306.05135), networks trained on
    anonymized pictures.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(TwinDetectionRate, evidence({"id": ["a"]}, {"id": ["a"]}, twins={"found": [1, 1, 1, 0]}))
    {'': 0.75}
    """

    title = "face detection rate after training on anonymized faces"
    direction = "higher"
    unit = "share of faces"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_twins(evidence, "found", share)
