"""Mean absolute error between the pixels of each original and its anonymized (or recovered) face."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import of_pixels

LEVELS = 255.0


class Mae(Metric):
    """Mean over faces, pixels and channels of |X - X'|, in [0, 1]; lower is better.

    X: 8-bit RGB, (N, 3, H, W), on the scale [0, 1]. The measured ``pixels.mae`` (N,) is on the scale 0 to 255.
    Reference: Cao et al. 2021, section 5.2.2, Table 4.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(Mae, evidence({"id": ["a", "b"]}, {"pixels.mae": [51.0, 102.0]}))  # (51 + 102) / 2 / 255
    {'': 0.3}
    """

    title = "mean absolute error"
    direction = "lower"
    unit = "of pixels in [0, 1]"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_pixels(evidence, "mae", LEVELS)
