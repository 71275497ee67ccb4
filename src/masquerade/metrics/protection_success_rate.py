"""How many faces a recogniser with its published threshold takes for somebody else."""

from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import distances
from masquerade.settings import Settings


class ProtectionSuccessRate(Metric):
    """Share of faces at least as far from their original as the threshold of the judge's authors, in [0, 1].

    A face that could not be anonymized or measured is not counted as protected: it is missing from ``over``.
    Reference: Wen et al. 2022 (IdentityDP), section V.B; dlib's threshold: King 2017.
    """

    title = "protection success rate"
    direction = "higher"
    unit = "share of faces"

    class Params(Settings):
        thresholds: dict[str, Annotated[float, Field(gt=0)]]
        """Judge -> the largest distance of one person (0.6: dlib's face recognition model, King 2017)."""

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        found = {}
        for judge, threshold in self.params.thresholds.items():
            if judge in evidence.judges:
                found[judge] = protected(
                    distances(evidence, judge), threshold, f"threshold {threshold:g}, as published"
                )
        return found


def protected(apart: np.ndarray, threshold: float, note: str) -> Value:
    """The share of the finite distances that are not below ``threshold``."""
    counted = apart[np.isfinite(apart)]
    value = float((counted >= threshold).mean()) if counted.size else float("nan")
    return Value(value, int(counted.size), len(apart), note=note)
