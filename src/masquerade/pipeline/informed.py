"""Attacks one anonymized set with attackers who know the method, and returns what each of them answered.

One row of the result is one probe of one attack. Metrics are computed from these rows (metrics/attack_*.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from masquerade.attackers import Attacker, Recogniser
from masquerade.attackers._distances import Distances, Shown, measured
from masquerade.attackers._lessons import Lesson, Pairs, pairs_of
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.core.settings import NoParameters
from masquerade.core.statistics import threshold_at
from masquerade.judges.pixels import Pixels

STRANGERS = 200
"""The most distances to strangers that are kept of a probe, evenly spread over all of them."""


@dataclass(frozen=True)
class Scene:
    """The pictures of one attack: those of the tested people, and the attackers' own."""

    tested: Pairs
    lesson: Lesson
    refused: pd.DataFrame
    """The rows of the tested pictures that the method refused."""


@dataclass(frozen=True)
class Attack:
    """One attacker before it attacks. ``trial``: the number of its training."""

    attacker: Attacker
    trial: int
    learnt: bool
    """Whether its training made it better; True for one without a training."""


def scene(originals: FaceArchive, tested: FaceArchive, lesson: Lesson) -> Scene:
    """``tested``: the archive with the anonymized pictures of the test split."""
    rows = tested.select("test", status=None)
    return Scene(pairs_of(originals, tested, "test"), lesson, rows[rows["status"] != "ok"])


def attack(attacks: Sequence[Attack], scenes: Mapping[str, Scene], clear: Mapping[str, Recogniser], far: float) -> pd.DataFrame:
    """Every attack on the pictures that it is for.

    ``scenes``: the pictures with keys of their own (``own``) and, for the attackers who have the key, those under one
    key (``one``). ``clear``: recognisers that know clear faces alone, by name. ``far``: false-accept rate of the
    thresholds, which held-out people of the attackers set under the same condition. Columns:

    - attacker, asks, recogniser, trial, learnt, control; id, identity and status of the probe,
    - ``rank`` of the right person among ``people`` in the gallery (see `Distances`), the ``distance`` to the person, the
      ``strangers``' distances, and the ``threshold`` (NaN if there are too few strangers for the rate),
    - of an attacker who restores: psnr, ssim and ``similarity`` (cosine, by the recogniser) to the probe's own original,
      and the same before the restoration (``before_...``).
    """
    frames = [
        frame
        for each in attacks
        for frame in _frames(each, scenes[each.attacker.keys], each.attacker.recognisers() or clear, far)
    ]
    return pd.concat(frames, ignore_index=True)


def _frames(each: Attack, scene: Scene, recognisers: Mapping[str, Recogniser], far: float) -> Iterator[pd.DataFrame]:
    attacker = each.attacker
    attacker.study(scene.lesson)
    probes = [_probes(attacker, part) for part in (scene.tested, scene.lesson.held_out)]
    for name, recogniser in recognisers.items():
        tested, held_out = (
            _asked(attacker, part, images, recogniser)
            for part, images in zip((scene.tested, scene.lesson.held_out), probes, strict=True)
        )
        threshold = threshold_at(far, np.sort(held_out.strangers.ravel()))
        rows = pd.DataFrame({
            "id": scene.tested.ids, "identity": scene.tested.people, "status": "ok",
            "rank": np.where(np.isfinite(tested.own), tested.ranks, np.nan), "distance": tested.own, "strangers": list(_spread(tested.strangers)),
            "people": tested.strangers.shape[1] + 1,
        })  # fmt: skip
        if attacker.restores:
            rows = rows.assign(**_restored(scene.tested, probes[0], recogniser))
        refused = scene.refused[["source_id", "identity", "status"]].rename(columns={"source_id": "id"})
        about = {
            "attacker": discovery.name_of(type(attacker)), "asks": attacker.asks, "recogniser": name,
            "trial": each.trial, "learnt": each.learnt, "control": attacker.control, "threshold": threshold,
        }  # fmt: skip
        yield pd.concat([rows, refused], ignore_index=True).assign(**about)


def _probes(attacker: Attacker, pairs: Pairs) -> np.ndarray:
    """The pictures whose person is sought, float32 (N, 3, H, W)."""
    if attacker.asks == "protecting":
        return to_float(pairs.clear)
    images = to_float(pairs.anonymized)
    return to_float(to_uint8(attacker.restore(images))) if attacker.restores else images


def _asked(attacker: Attacker, pairs: Pairs, images: np.ndarray, recogniser: Recogniser) -> Distances:
    """The distances of the probes to the people of the gallery that the attack asks about."""
    probes, clear = Shown(recogniser(images), pairs.people, pairs.ids), None
    if attacker.asks != "linking":
        clear = Shown(recogniser(to_float(pairs.clear)), pairs.people, pairs.ids)
    if attacker.asks == "protecting":
        assert clear is not None
        return measured(probes, clear, Shown(recogniser(to_float(pairs.anonymized)), pairs.people, pairs.ids))
    if attacker.control:
        probes = Shown(probes.embeddings, _dealt(pairs.people), pairs.ids)
    return measured(probes, clear or probes)


def _dealt(people: np.ndarray) -> np.ndarray:
    """For each picture the name of the next person in the order of the names: nobody keeps the own one."""
    names, numbers = np.unique(people, return_inverse=True)
    return np.roll(names, 1)[numbers]


def _spread(strangers: np.ndarray) -> np.ndarray:
    """At most STRANGERS columns of (N, S), evenly spread over the sorted distances of a row."""
    ordered = np.sort(strangers, axis=1).astype(np.float32)
    if ordered.shape[1] <= STRANGERS:
        return ordered
    return ordered[:, np.linspace(0, ordered.shape[1] - 1, STRANGERS).round().astype(int)]


def _restored(pairs: Pairs, restored: np.ndarray, recogniser: Recogniser) -> dict[str, np.ndarray]:
    clear, before = to_float(pairs.clear), to_float(pairs.anonymized)
    person, columns = recogniser(clear), {}
    pixels = Pixels(NoParameters(), {})
    for prefix, images in (("", restored), ("before_", before)):
        measures = pixels.measure(images, clear)
        columns[f"{prefix}psnr"], columns[f"{prefix}ssim"] = measures["psnr"], measures["ssim"]
        columns[f"{prefix}similarity"] = _cosines(recogniser(images), person)
    return columns


def _cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / lengths
