"""Overlap with the true box of the box by a detector that learned from anonymized faces."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import of_twins
from masquerade.metrics._values import mean


class TwinBoxOverlap(Metric):
    """Mean over clear test pictures of |A and B| / |A or B|, in [0, 1]; higher is better.

    A: the detector's box, B: the true one; ``overlap``: (N,), the intersection over union of their areas. The detector
    never saw a clear picture.
    Reference: Everingham et al. 2010, The PASCAL Visual Object Classes Challenge (overlap); Hukkelås and Lindseth 2023
    (arXiv:2306.05135), networks trained on anonymized pictures.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(TwinBoxOverlap, evidence({"id": ["a"]}, {"id": ["a"]}, twins={"overlap": [0.9, 0.5]}))
    {'': 0.7}
    """

    title = "overlap of boxes after training on anonymized faces"
    direction = "higher"
    unit = "intersection over union"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_twins(evidence, "overlap", mean)
