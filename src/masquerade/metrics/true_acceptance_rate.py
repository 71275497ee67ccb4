"""How often two pictures of one person are still taken for one person when the second is anonymized."""

import math
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from masquerade import seeding
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import between, judges_with, threshold_at, too_few
from masquerade.settings import Settings


class TrueAcceptanceRate(Metric):
    """FaceNet's validation rate on pairs of one person, the second picture anonymized: mean over folds, in [0, 1].

    People are dealt to folds. For each fold the threshold is that at which a share ``far`` of the pairs of different
    people of the other folds, both pictures original, is accepted; the fold's rate is the share of its genuine pairs
    (original i, anonymized j > i) below that. The spread is the standard deviation over folds, as LFW reports it.
    Where the index has the columns ``fold`` and ``pairs``, as LFW's has, folds and pairs are the published ones.
    Reference: Huang et al. 2007 (LFW, view 2); Schroff et al. 2015, section 4; Wen et al. 2022 (IdentityDP), Table III.
    """

    title = "true-acceptance rate"
    direction = "lower"
    unit = "share of genuine pairs"
    repeats = False

    class Params(Settings):
        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate of the threshold (0.001: FaceNet's protocol on LFW)."""
        folds: Annotated[int, Field(ge=2)]
        """Groups of people (10: LFW)."""
        most_pictures: Annotated[int, Field(ge=4)]
        """Pictures, drawn by a fixed seed, whose pairs set the thresholds (half their square)."""

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._judged(evidence, judge) for judge in judges_with(evidence, "embedding")}

    def _judged(self, evidence: Evidence, judge: str) -> Value:
        original, derived = evidence.pair(f"{judge}.embedding")
        names = evidence.original["identity"].to_numpy()
        published = "pairs" in evidence.original
        folds = evidence.original["fold"].to_numpy() if published else self._dealt(names)
        first, second = _listed(evidence.original) if published else (None, None)
        rates, counted, pairs, fewest = [], 0, 0, math.inf
        for fold in sorted(set(folds)):
            if published:
                same, here = names[first] == names[second], folds[first] == fold
                impostors = _distances(original[first], original[second], ~same & ~here)
                impostors = np.sort(impostors[np.isfinite(impostors)])
                apart = _distances(original[first], derived[second], same & here)
            else:
                impostors = self._impostors(original[folds != fold], names[folds != fold])
                apart = _genuine(original, derived, names, np.flatnonzero(folds == fold))
            fewest = min(fewest, len(impostors))
            threshold = threshold_at(self.params.far, impostors)
            seen = apart[np.isfinite(apart)]
            pairs += len(apart)
            if seen.size and not math.isnan(threshold):
                counted += seen.size
                rates.append(float((seen < threshold).mean()))
        if not rates:
            why = too_few(self.params.far, int(fewest), ("the", "folds")) if pairs else "nobody has two pictures"
            return Value(math.nan, 0, pairs, note=why)
        spread = float(np.std(rates)) if len(rates) > 1 else None
        note = f"FAR {self.params.far:g} of at least {int(fewest)} impostor pairs, {len(rates)} folds"
        return Value(float(np.mean(rates)), counted, pairs, spread, "folds" if spread is not None else "", note)

    def _dealt(self, names: np.ndarray) -> np.ndarray:
        """The fold of each picture: people in the order of their names, in turn."""
        fold_of = {name: number % self.params.folds for number, name in enumerate(sorted(set(names)))}
        return np.array([fold_of[name] for name in names])

    def _impostors(self, embeddings: np.ndarray, names: np.ndarray) -> np.ndarray:
        seen = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
        if len(seen) > self.params.most_pictures:
            draw = seeding.generator(0, "true_acceptance_rate")
            seen = np.sort(draw.choice(seen, self.params.most_pictures, replace=False))
        return np.sort(between(embeddings[seen], names[seen]))


def _listed(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The rows (P,) of the first and of the second pictures of the published pairs whose pictures are both here."""
    place = {name: row for row, name in enumerate(rows["id"])}
    found = [(row, place[other]) for row, others in enumerate(rows["pairs"]) for other in others if other in place]
    return tuple(np.array(found, dtype=int).reshape(-1, 2).T)


def _distances(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(first[rows] - second[rows], axis=1)


def _genuine(original: np.ndarray, derived: np.ndarray, names: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Distances of (original i, derived j), i < j, of one person each, among the rows of a fold."""
    first, second = np.triu_indices(len(rows), 1)
    first, second = rows[first], rows[second]
    same = (names[first] == names[second]) & (names[first] != "")  # two faces of nobody known may be two people
    return np.linalg.norm(original[first[same]] - derived[second[same]], axis=1)
