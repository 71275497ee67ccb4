"""How much of what a face does and shows remains: expression, pose, gaze and apparent ethnicity."""

import numpy as np

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import average_faces, share


def _keep_class(original: np.ndarray, derived: np.ndarray) -> np.ndarray:
    """1 if the most probable class is the same, 0 if it is another one, NaN if one is missing; (N,)."""
    measured = np.isfinite(original).all(axis=1) & np.isfinite(derived).all(axis=1)
    return np.where(measured, original.argmax(axis=1) == derived.argmax(axis=1), np.nan)


class ExpressionPreservation(Metric):
    """Mean over faces of [argmax p(X) = argmax p(X')], in [0, 1]; higher is better.

    p: the judge's probabilities of expressions, (N, E).
    Reference: FDeID-Toolbox and UtilFace (2026) count expressions among what anonymization should keep; the measure is
    ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = {"net.expression": [[0.9, 0.1], [0.2, 0.8]]}, {"net.expression": [[0.6, 0.4], [0.7, 0.3]]}
    >>> values(ExpressionPreservation, evidence(before, after))  # kept, changed
    {'net': 0.5}
    """

    name = "expression_preservation"
    title = "expression preservation"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "expression", _keep_class, share)


class EthnicityPreservation(Metric):
    """Mean over faces of [argmax p(X) = argmax p(X')], in [0, 1]; higher is better.

    p: the judge's probabilities of apparent ethnicities, (N, E), as its authors name them.
    Reference: as `expression_preservation` (UtilFace, 2026).

    >>> from masquerade.metrics._examples import evidence, values
    >>> before, after = {"net.ethnicity": [[0.9, 0.1], [0.2, 0.8]]}, {"net.ethnicity": [[0.6, 0.4], [0.7, 0.3]]}
    >>> values(EthnicityPreservation, evidence(before, after))  # kept, changed
    {'net': 0.5}
    """

    name = "ethnicity_preservation"
    title = "preservation of apparent ethnicity"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "ethnicity", _keep_class, share)


class PoseDifference(Metric):
    """Mean over faces of the mean over yaw, pitch and roll of |a(X) - a(X')| in degrees, at least 0; lower is better.

    a: (N, 3). Yaw and pitch beyond 90 degrees do not occur, so angles are not wrapped.
    Reference: Hukkelås and Lindseth 2023 (DeepPrivacy2) and UtilFace (2026) compare head poses; the mean is ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(PoseDifference, evidence({"net.pose": [[0, 0, 0]]}, {"net.pose": [[6, -3, 0]]}))  # (6 + 3 + 0) / 3
    {'net': 3.0}
    """

    name = "pose_difference"
    title = "difference of the head's pose"
    direction = "lower"
    unit = "degrees"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "pose", lambda first, second: np.abs(first - second).mean(axis=1))


class GazeDifference(Metric):
    """Mean over faces of the angle between g(X) and g(X') in degrees, at least 0; lower is better.

    g: the gaze in the head, (N, 2), right and up; for the small angles of eyes the angle is their Euclidean distance.
    Reference: as `pose_difference` (UtilFace, 2026).

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(GazeDifference, evidence({"net.gaze": [[0, 0]]}, {"net.gaze": [[3, -4]]}))
    {'net': 5.0}
    """

    name = "gaze_difference"
    title = "difference of the gaze"
    direction = "lower"
    unit = "degrees"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "gaze", lambda first, second: np.linalg.norm(first - second, axis=1))
