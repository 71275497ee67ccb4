"""Error on clear faces of a landmark network that learned from anonymized faces."""

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._attacks import of_twins
from masquerade.metrics._values import mean


class TwinLandmarkError(Metric):
    """Mean over clear test pictures of the mean landmark error in percent of the eye distance; lower is better.

    ``landmark_error``: (N,), at least 0, the mean over points of their Euclidean distance. The network never saw a
    clear picture, so a small error says that anonymized pictures can replace clear ones in its training.
    Reference: Sagonas et al. 2013, 300 Faces in-the-Wild Challenge (error by eye distance); Hukkelås and Lindseth 2023,
    Does Image Anonymization Impact Computer Vision Training? (arXiv:2306.05135).

    >>> from masquerade.metrics._examples import evidence, values
    >>> errors = {"landmark_error": [4.0, 6.0]}
    >>> values(TwinLandmarkError, evidence({"id": ["a"]}, {"id": ["a"]}, twins=errors))
    {'': 5.0}
    """

    title = "landmark error after training on anonymized faces"
    direction = "lower"
    unit = "% of the eye distance"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return of_twins(evidence, "landmark_error", mean)
