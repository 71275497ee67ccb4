"""Attacks on keyed methods that need no training: guessed keys, wrong keys averaged, a flipped sign, linked images.

Every attack has a control, which shows what the attack gives where there is nothing to find. Each share has an interval
over people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from masquerade.core.errors import ProtocolError
from masquerade.core.face_tables import stack
from masquerade.core.images import FaceArchive, Faces, to_float, to_uint8
from masquerade.core.statistics import compute_interval, count_people, encode, people_of, people_weights
from masquerade.core.thresholds import estimate_threshold, pair_strangers
from masquerade.judges import Judge
from masquerade.methods import Method
from masquerade.params.protocols import AttackSettings
from masquerade.pipeline import anonymization


@dataclass(frozen=True)
class Recognition:
    """The judge of the attacks, and the measurements of the originals, which hold its embeddings.

    It accepts an image for a person if its embedding is nearer to that of the person's original than a threshold,
    which is set on the pairs of different people in the split ``calibrate_on``.
    """

    judge: Judge
    originals: pd.DataFrame
    calibrate_on: str


class KeyAttacks:
    """The attacks on the keys of one anonymized set.

    The threshold of the ``recognition`` accepts a share ``settings.far`` of the pairs of different people. ``draws``:
    bootstrap samples. Raises ProtocolError if the method takes no key, and if it recovers nothing.
    """

    def __init__(
        self,
        originals: FaceArchive,
        anonymized: FaceArchive,
        method: Method,
        recognition: Recognition,
        settings: AttackSettings,
        draws: int,
    ):
        name, keys = anonymized.metadata["method"], method.capabilities.keys
        if keys is None:
            raise ProtocolError(f"{name} takes no key, so there is none to attack.")
        if not method.capabilities.invertible:
            raise ProtocolError(f"{name} recovers no face with its key: these attacks look for keys that do.")
        self._keys, self._method, self._judge = keys, method, recognition.judge
        self._originals, self._anonymized, self._settings, self._draws = originals, anonymized, settings, draws
        self._seed = anonymized.metadata["seed"]
        self._column = f"{settings.judge}.embedding"
        self._measured = recognition.originals.set_index("id", drop=False)
        source = recognition.originals
        calibration = source[source["split"] == recognition.calibrate_on]
        embeddings, names = stack(calibration[self._column]), calibration["identity"].to_numpy()
        self._threshold = estimate_threshold(settings.far, pair_strangers(embeddings, names, settings.far), draws)

    def results(self) -> dict[str, Any]:
        """The results of all attacks as plain values; nothing is ``found`` if there is no threshold.

        The metrics `key_attack_rate` and `linkage_auc` say what each one means.
        """
        settings, has_threshold = self._settings, math.isfinite(self._threshold.distance)
        return {
            "judge": settings.judge,
            "far": settings.far,
            "threshold": self._threshold.describe() if has_threshold else None,
            "keys": self._keys.count,
            "guesses": settings.guesses,
            "averaged": settings.averaged,
            "found": self._measure_attacks() if has_threshold else {},
            "linked": self._measure_linkage(),
        }

    def _measure_attacks(self) -> dict[str, Any]:
        """Attack -> how often the person is found, and as a control another person (``another``)."""
        rows = anonymization.select_subset(self._anonymized.select(), self._settings.pictures)
        faces = self._anonymized.load(rows=rows)
        people = people_of(rows["identity"].to_numpy(), rows["source_id"].to_numpy())
        person = self._read_embeddings(rows["source_id"])
        stranger = person[_find_strangers(people)]
        weights = people_weights(people, self._draws)
        right = [self._keys.experiment(self._seed, name) for name in faces.ids]
        guesses, average = self._guess_keys(faces, right, person, stranger)
        anonymized = self._embed(faces.images)
        distances = {
            "right_key": _compare(self._embed(self._method.recover(faces.images, right)), person, stranger),
            "no_attack": _compare(anonymized, person, stranger),
            "guess": guesses,
            "any_guess": np.nanmin(guesses, axis=1),
            "average": _compare(average, person, stranger),
            "sign_flip": _compare(-anonymized, person, stranger),
        }
        return {
            name: {"person": self._measure_share(attack, weights), "another": self._measure_share(control, weights)}
            for name, (attack, control) in distances.items()
        }

    def _guess_keys(
        self, faces: Faces, right: Sequence[bytes], person: np.ndarray, stranger: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random keys: the distances with each, (2, guesses, N), NaN where the key is the right one.

        And the mean embedding of the first wrong keys, (N, D), as long as a single one is on average.
        """
        settings, distances, wrong_embeddings = self._settings, [], []
        for number in tqdm(range(settings.guesses), desc="guesses", mininterval=5):
            key = self._keys.experiment(self._seed, "guess", number)
            embeddings = self._embed(self._method.recover(faces.images, [key] * len(faces)))
            wrong = np.array([key != right_key for right_key in right])
            distances.append(np.where(wrong, _compare(embeddings, person, stranger), np.nan))
            if number < settings.averaged:
                wrong_embeddings.append(np.where(wrong[:, None], embeddings, np.nan))
        mean = np.nanmean(wrong_embeddings, axis=0)
        length = np.nanmean(np.linalg.norm(wrong_embeddings, axis=2), axis=0)
        average = mean / np.linalg.norm(mean, axis=1, keepdims=True) * length[:, None]
        return np.array(distances).transpose(1, 0, 2), average

    def _measure_linkage(self) -> dict[str, Any]:
        """Kind of images -> how well two images of one person are told from images of two people (AUC)."""
        rows = self._anonymized.select()
        faces = self._anonymized.load(rows=rows)
        sources = self._originals.index.set_index("id", drop=False).loc[rows["source_id"]]
        shared_key = self._keys.experiment(self._seed, "one for all")
        under_one = self._method.anonymize(self._originals.load(rows=sources), self._seed, [shared_key] * len(faces))
        pictures = {
            "originals": self._read_embeddings(rows["source_id"]),
            "own_keys": self._embed(faces.images),
            "one_key": self._embed(under_one),
        }
        people = people_of(rows["identity"].to_numpy(), rows["source_id"].to_numpy())
        shuffled = np.random.default_rng(0).permutation(people)
        values = {name: measure_linkage(embeddings, people, self._draws) for name, embeddings in pictures.items()}
        return values | {"shuffled": measure_linkage(pictures["one_key"], shuffled, self._draws)}

    def _measure_share(self, distances: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        """The mean over faces of the share of the finite ``distances``, (N,) or (tries, N), below the threshold.

        Each sample has its own threshold. The values are those of `_to_plain`.
        """
        thresholds = np.array([self._threshold.distance, *self._threshold.draws])
        shares = _share_below(np.atleast_2d(distances), thresholds)  # (1 + draws, N)
        measured = np.isfinite(shares[0])
        value = float(shares[0, measured].mean()) if measured.any() else math.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = (weights * shares[1:])[:, measured].sum(axis=1) / (weights @ measured)
        return _to_plain(value, draws, int(measured.sum()), len(measured), count_people(weights[:, measured]))

    def _embed(self, images: np.ndarray) -> np.ndarray:
        return np.asarray(self._judge.measure(to_float(to_uint8(images)))["embedding"], dtype=np.float64)

    def _read_embeddings(self, ids: Sequence[str]) -> np.ndarray:
        return stack(self._measured.loc[list(ids), self._column])


def measure_linkage(embeddings: np.ndarray, people: np.ndarray, draws: int) -> dict[str, Any]:
    """The share of (pair of one person, pair of two people) in which the former is nearer, and its interval.

    That is the area under the ROC curve: 1 if images of one person are always nearer, 0.5 by chance. ``embeddings``:
    (N, D). ``people``: (N,). In a bootstrap sample a pair counts as often as the product of its people's counts; a pair
    of one person as often as the person. ``over`` of ``of`` pairs of one person were measured. ``value`` is None
    without any, or without a pair of two people.
    """
    distinct, numbers = np.unique(people, return_inverse=True)
    first, second = np.triu_indices(len(people), 1)
    distances = np.linalg.norm(embeddings[first] - embeddings[second], axis=1)
    same, measured = numbers[first] == numbers[second], np.isfinite(distances)
    pairs = int(same.sum())
    first, second, distances, same = (each[measured] for each in (first, second, distances, same))
    if not same.any() or same.all():
        return _to_plain(math.nan, np.empty(0), 0, pairs)
    strangers = np.argsort(distances[~same], kind="stable")
    sorted_distances = distances[~same][strangers]
    nearer = np.searchsorted(sorted_distances, distances[same], "left")
    not_farther = np.searchsorted(sorted_distances, distances[same], "right")
    left, right = numbers[first][~same][strangers], numbers[second][~same][strangers]
    person = numbers[first][same]
    counts = np.concatenate([np.ones((1, len(distinct))), people_weights(distinct, draws)])
    areas = []
    for count in counts:
        cumulated = np.concatenate([[0.0], np.cumsum(count[left] * count[right])])
        farther = cumulated[-1] - (cumulated[nearer] + cumulated[not_farther]) / 2  # a tie counts half
        total = count[person].sum() * cumulated[-1]
        areas.append(float(count[person] @ farther / total) if total else math.nan)
    return _to_plain(areas[0], np.array(areas[1:]), int(same.sum()), pairs)


def _compare(embeddings: np.ndarray, *people: np.ndarray) -> np.ndarray:
    """The distance of each embedding to that of the person, (P, N), for each of P ``people``, (N, D) each."""
    return np.stack([np.linalg.norm(embeddings - person, axis=1) for person in people])


def _share_below(distances: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The share of the finite ``distances`` of each face, (tries, N), below each of B thresholds, (B, N).

    NaN for a face without a distance and for a threshold that is NaN.
    """
    ordered, counts = np.sort(distances, axis=0), np.isfinite(distances).sum(axis=0)  # NaN comes last
    below = [np.searchsorted(face[:count], thresholds) for face, count in zip(ordered.T, counts, strict=True)]
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(thresholds)[:, None], np.nan, np.transpose(below) / counts)


def _to_plain(value: float, draws: np.ndarray, over: int, of: int, people: int | None = None) -> dict[str, Any]:
    """A number with its interval, denominators and bootstrap ``draws`` (B,), as JSON holds it; None in place of NaN.

    ``people``: how many are behind a share; None for another number.
    """
    low, high = compute_interval(value, draws, people) or (None, None)
    number = value if math.isfinite(value) else None
    ends = {"low": low, "high": high}
    return {"value": number, **ends, "over": over, "of": of, "people": people, "draws": encode(draws)}


def _find_strangers(people: np.ndarray) -> np.ndarray:
    """For each row, (N,), the next row (in a circle) that shows another person; the row itself if all are one."""
    count = len(people)
    places = np.arange(count)
    strangers = places
    for step in range(count - 1, 0, -1):
        next_places = (places + step) % count
        strangers = np.where(people[next_places] != people, next_places, strangers)
    return strangers
