"""Mean absolute error of the pixels of each original and its anonymized (or recovered) face."""

from masquerade.metrics import Evidence, Metric, Value, stack
from masquerade.metrics._values import mean

LEVELS = 255.0


class Mae(Metric):
    """Mean over faces, pixels and channels of |X - X'| of 8-bit RGB on the scale [0, 1], in [0, 1].

    Reference: Cao et al. 2021, section 5.2.2, Table 4.
    """

    title = "mean absolute error"
    direction = "lower"
    unit = "of pixels in [0, 1]"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        column = "pixels.mae"  # levels, on the scale 0..255
        return {"": mean(stack(evidence.derived[column]) / LEVELS)} if column in evidence.derived else {}
