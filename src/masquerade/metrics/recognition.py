"""Verification and identification with anonymized faces, by recognizers trained on unprotected faces."""

import math
import operator
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from masquerade.core import seeding
from masquerade.core.face_tables import stack
from masquerade.core.settings import Settings
from masquerade.core.statistics import compute_weighted_means
from masquerade.core.thresholds import Impostors, describe_rate, estimate_threshold, list_impostors, pair_strangers
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._tails import Tail
from masquerade.metrics._values import distances, draw_shares, judges_with, mean_of_draws, too_few


class TrueAcceptanceRate(Metric):
    """Mean over folds of the mean over genuine pairs of [||e(X_i) - e(X'_j)||_2 < t], in [0, 1]; lower is better.

    This is FaceNet's validation rate with the second image of each pair anonymized. e: the judge's embedding, (N, D).
    Each person is in one fold. The genuine pairs of a fold are (original i, anonymized j > i) of one person. The
    threshold t of a fold accepts at most a share ``far`` of the pairs of different people of the other folds, both
    images original; each bootstrap sample has thresholds of its own. Images of the gallery come before all others, and
    are never j. The spread is the standard deviation over folds, as LFW reports it. If the index has the columns
    ``fold`` and ``pairs``, as LFW's has, folds and pairs are the published ones.
    Reference: Huang et al. 2007 (LFW, view 2); Schroff et al. 2015, section 4; Wen et al. 2022 (IdentityDP), Table III.

    >>> from masquerade.metrics._examples import evidence, values
    >>> originals = {"identity": [*"aabbccdd"], "net.embedding": [[0], [0], [0], [0], [9], [9], [9], [9]]}
    >>> anonymized = {"net.embedding": [[0], [1], [0], [99], [9], [8], [9], [99]]}  # b and d are far from themselves
    >>> values(TrueAcceptanceRate, evidence(originals, anonymized), far=0.5, folds=2, most_pictures=8)
    {'net': 0.5}
    """

    name = "true_acceptance_rate"
    title = "true-acceptance rate"
    direction = "lower"
    unit = "share of genuine pairs"
    repeats = False

    class Params(Settings):
        """The protocol of the pairs."""

        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate at which the threshold is set (0.001: FaceNet's protocol on LFW)."""
        folds: Annotated[int, Field(ge=2)]
        """Number of groups into which the people are divided (10: LFW)."""
        most_pictures: Annotated[int, Field(ge=4)] = 4000
        """Largest number of images whose pairs set the thresholds. If there are more, a fixed seed chooses among
        them."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: self._verify(evidence, judge) for judge in judges_with(evidence, "embedding")}

    def _verify(self, evidence: Evidence, judge: str) -> Value:
        rows, derived = evidence.unprotected, stack(evidence.derived[f"{judge}.embedding"])
        original, names = stack(rows[f"{judge}.embedding"]), rows["identity"].to_numpy()
        further = np.full((len(evidence.gallery), derived.shape[1]), np.nan)  # images that are not anonymized
        derived = np.concatenate([further, derived])
        published = "pairs" in rows
        folds = rows["fold"].to_numpy() if published else self._folds(names)
        first, second = _read_published_pairs(rows) if published else (np.empty(0, int), np.empty(0, int))
        thresholds, rates, draws, counted, pairs, fewest, tested = [], [], [], 0, 0, math.inf, set()
        for fold in sorted(set(folds)):
            if published:
                same, inside = names[first] == names[second], folds[first] == fold
                of_others = ~same & ~inside
                apart = distances(original[first], original[second])[of_others]
                impostors = list_impostors(apart, names[first[of_others]], names[second[of_others]])
                people = names[first[same & inside]]
                genuine = distances(original[first], derived[second])[same & inside]
            else:
                impostors = self._impostors(original[folds != fold], names[folds != fold])
                members = np.flatnonzero(folds == fold)
                genuine, people = _genuine(original, derived, names, members, len(further))
            fewest = min(fewest, impostors.count)
            threshold = estimate_threshold(self.params.far, impostors, evidence.draws)
            measured = np.isfinite(genuine)
            pairs += len(genuine)
            if measured.any() and not math.isnan(threshold.distance):
                thresholds.append(threshold)
                counted += int(measured.sum())
                rates.append(float((genuine[measured] < threshold.distance).mean()))
                draws.append(draw_shares(genuine, evidence.weights_of(people), operator.lt, threshold.draws))
                tested |= set(people[measured])
        if not rates:
            reason = too_few(self.params.far, int(fewest), "the folds") if pairs else "nobody has two images"
            return Value(math.nan, 0, pairs, note=reason)
        spread = float(np.std(rates)) if len(rates) > 1 else None
        note = f"FAR {self.params.far:g} of at least {int(fewest):,} impostor pairs, {len(rates)} folds"
        note += describe_rate(
            float(np.mean([threshold.rate for threshold in thresholds])),
            mean_of_draws([threshold.rates for threshold in thresholds]),
        )
        kind = "folds" if spread is not None else ""
        return Value(
            float(np.mean(rates)), counted, pairs, spread, kind, note, mean_of_draws(draws), people=len(tested)
        )

    def _folds(self, names: np.ndarray) -> np.ndarray:
        """The fold of each image, (N,): people take the folds in turn, in the order of their names."""
        fold_of = {name: number % self.params.folds for number, name in enumerate(sorted(set(names)))}
        return np.array([fold_of[name] for name in names])

    def _impostors(self, embeddings: np.ndarray, names: np.ndarray) -> Impostors:
        """The nearest pairs of different people, from ``most_pictures`` images at most."""
        rows = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
        if len(rows) > self.params.most_pictures:
            draw = seeding.make_generator(0, "true_acceptance_rate")
            rows = np.sort(draw.choice(rows, self.params.most_pictures, replace=False))
        return pair_strangers(embeddings[rows], names[rows], self.params.far)


def _read_published_pairs(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The rows (P,) of the first and of the second images of the published pairs; both must be in the set."""
    row_of = {name: row for row, name in enumerate(rows["id"])}
    pairs = [(row, row_of[other]) for row, others in enumerate(rows["pairs"]) for other in others if other in row_of]
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    return first, second


def _genuine(
    original: np.ndarray, derived: np.ndarray, names: np.ndarray, rows: np.ndarray, further: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all pairs (original i, derived j), i < j, of one person, in a fold; and the person.

    The first ``further`` images have no derived one.
    """
    first, second = np.triu_indices(len(rows), 1)
    first, second = rows[first], rows[second]
    # two faces without a known identity may be two people
    same = (names[first] == names[second]) & (names[first] != "") & (second >= further)
    return distances(original[first[same]], derived[second[same]]), names[first[same]]


AT_ONCE = 512
"""Anonymized faces that are compared with the whole gallery at a time."""


class Rank1IdentificationRate(Metric):
    """Mean over faces of [the nearest image in the gallery shows the same person], in [0, 1]; lower is better.

    The nearest image has the smallest Euclidean distance of embeddings, (N, D). The gallery holds the originals of the
    whole set and `Evidence.gallery`, without the face's own source, so that the person counts and not the pose, light
    or background of one image. Faces of people with another image in the gallery are probes; people with one image stay
    in the gallery as distractors. The note gives the chance level: the mean share of the gallery that shows the right
    person. The metric is ours: its attacker is stronger than verification.
    Reference: Phillips et al. 2011, Evaluation Methods in Face Recognition (closed-set identification, rank 1).

    >>> from masquerade.metrics._examples import evidence, values
    >>> originals = {"identity": ["a", "a", "b", "b"], "net.embedding": [[0], [1], [5], [6]]}
    >>> anonymized = {"net.embedding": [[0], [1], [0], [1]]}  # both faces of b are nearest to a
    >>> values(Rank1IdentificationRate, evidence(originals, anonymized))
    {'net': 0.5}
    """

    name = "rank1_identification_rate"
    title = "rank-1 identification rate"
    direction = "lower"
    unit = "share of faces of people with several images"
    repeats = False

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return {judge: _identify(evidence, f"{judge}.embedding") for judge in judges_with(evidence, "embedding")}


def _identify(evidence: Evidence, column: str) -> Value:
    from scipy.spatial.distance import cdist

    derived, gallery = stack(evidence.derived[column]), stack(evidence.unprotected[column])
    names, before = evidence.unprotected["identity"].to_numpy(), len(evidence.gallery)
    people, counts = np.unique(names, return_counts=True)
    several = np.isin(names, people[(people != "") & (counts > 1)])[before:]
    # a face without a known identity is no match for any
    compared = np.flatnonzero(np.isfinite(gallery).all(axis=1) & (names != ""))
    probes = before + np.flatnonzero(several & np.isfinite(derived).all(axis=1))
    right, chances, people = [], [], []
    for start in range(0, len(probes), AT_ONCE):
        rows = probes[start : start + AT_ONCE]
        others = rows[:, None] != compared[None, :]
        same = (names[rows][:, None] == names[compared][None, :]) & others
        apart = np.where(others, cdist(derived[rows - before], gallery[compared], "sqeuclidean"), np.inf)
        findable = same.any(axis=1)  # False if no other image of the person was measured
        nearest = apart[findable].argmin(axis=1)
        people += names[rows[findable]].tolist()
        right += same[findable][np.arange(findable.sum()), nearest].tolist()
        chances += (same[findable].sum(axis=1) / others[findable].sum(axis=1)).tolist()
    if not right:
        reason = "no face could be measured" if several.any() else "nobody has two images"
        return Value(math.nan, 0, int(several.sum()), note=reason)
    note = f"chance {np.mean(chances):.3f}, nearest of {len(compared)} originals without its own"
    draws = compute_weighted_means(np.array(right, dtype=float), evidence.weights_of(np.array(people)))
    return Value(float(np.mean(right)), len(right), int(several.sum()), note=note, draws=draws, people=len(set(people)))


RESAMPLED = 20
"""How often the strangers are drawn anew, with replacement, for the intervals."""


class LargeGalleryRate(Metric):
    """Mean over faces of [the nearest person of the set is the right one] (1 - p)^n, in [0, 1]; lower is better.

    That is the rank-1 identification rate when n strangers are added to the gallery of the tested people. p is the
    probability that a stranger is nearer to the anonymized face than the nearest image of its person. It comes from the
    distances to `Evidence.distractors`; where hardly a stranger was seen, from the line through the normal deviates of
    the nearest share ``tail`` of them. A gallery that is larger than the set of strangers is an extrapolation of that
    line, and the note says so. Intervals are over the tested people, and over which strangers were drawn.
    Parts: ``<judge>.<n>``. The gallery has the faces' own sources only if the set has no further images of its people.
    Reference: Kemelmacher-Shlizerman et al. 2016 (MegaFace; a million distractors), section 4; the line is ours, after
    Martin et al. 1997.

    >>> from masquerade.metrics._examples import evidence, values
    >>> originals = {"identity": ["a", "b"], "net.embedding": [[0.0], [9.0]]}
    >>> anonymized = {"identity": ["a", "b"], "net.embedding": [[1.0], [8.0]]}
    >>> strangers = {"net": [[0.5], [5.0], [6.0], [8.5]]}  # one of four is nearer than the person, to either face
    >>> values(LargeGalleryRate, evidence(originals, anonymized, distractors=strangers), sizes=[0, 2], tail=0.01)
    {'net.0': 1.0, 'net.2': 0.5625}
    """

    name = "large_gallery_rate"
    title = "rank-1 rate in a large gallery"
    direction = "lower"
    unit = "share of faces"
    repeats = False

    class Params(Settings):
        """The galleries."""

        sizes: list[Annotated[int, Field(ge=0)]]
        """Numbers of strangers in the gallery beside the tested people."""
        tail: Annotated[float, Field(gt=0, lt=0.5)]
        """The share of the strangers, the nearest, to which the tail of their distances is fitted (ours)."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        judges = [name for name in judges_with(evidence, "embedding") if name in evidence.distractors]
        return {name: value for judge in judges for name, value in self._identify(evidence, judge).items()}

    def _identify(self, evidence: Evidence, judge: str) -> dict[str, Value]:
        from scipy.spatial.distance import cdist

        column, strangers = f"{judge}.embedding", np.asarray(evidence.distractors[judge])
        gallery = evidence.gallery if len(evidence.gallery) else evidence.original
        derived, unprotected = stack(evidence.derived[column]), stack(gallery[column])
        names, people = gallery["identity"].to_numpy(), evidence.original["identity"].to_numpy()
        distance = cdist(derived, unprotected)
        same = (people[:, None] == names[None, :]) & (people[:, None] != "")
        own = np.where(same & np.isfinite(distance), distance, np.inf).min(axis=1)
        others = np.where(same | ~np.isfinite(distance), np.inf, distance).min(axis=1)
        measured = np.flatnonzero(np.isfinite(own))
        if not len(measured):
            return {f"{judge}.{size}": Value(math.nan, 0, len(own), note="no face could be measured")
                    for size in self.params.sizes}  # fmt: skip
        first, own = (own < others)[measured], own[measured]
        tail = Tail(cdist(derived[measured], strangers), own, self.params.tail)
        chances, count = tail.estimate(), len(strangers)
        draw = seeding.make_generator(0, self.name, judge)
        samples = (draw.integers(count, size=count) for _ in range(min(RESAMPLED, evidence.draws)))
        resampled = [tail.estimate(np.bincount(sample, minlength=count)) for sample in samples]
        weights = evidence.weights[:, measured]

        def measure(size: int) -> Value:
            if size > len(strangers) and not tail.is_fitted:
                few = f"{len(strangers)} strangers are too few for the tail of their distances"
                return Value(math.nan, 0, len(people), note=few)
            rates = first * (1 - chances) ** size
            draws = np.zeros(evidence.draws)
            for number, drawn in enumerate(resampled):
                rows = slice(number, None, len(resampled))
                draws[rows] = compute_weighted_means(first * (1 - drawn) ** size, weights[rows])
            extrapolated = f"; extrapolation from {len(strangers)} strangers" if size > len(strangers) else ""
            note = f"{len(set(names))} people and {size} strangers{extrapolated}"
            known = len(set(evidence.people[measured].tolist()))
            return Value(float(rates.mean()), len(measured), len(people), note=note, draws=draws, people=known)

        return {f"{judge}.{size}": measure(size) for size in self.params.sizes}
