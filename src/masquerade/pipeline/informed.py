"""Attacks one anonymized set with attackers who know the method, and writes what each of them answered.

One row of the result is one probe of one attack. Metrics are computed from these rows (metrics/attacks.py):

    attacker  asks    recognizer  trial  group   id    rank  distance  threshold  people
    adapted   naming  adapted     0      tested  p3_0  1.0   0.41      0.62       24
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from masquerade.attackers import Attacker, Recognizer
from masquerade.attackers.study import PART as TRAIN
from masquerade.attackers.study import (
    AttackerTrainingSet,
    Distances,
    EmbeddingSet,
    Pairs,
    Photographs,
    collect_training_set,
    measure_distances,
    select_pairs,
    select_people,
    select_photographs,
)
from masquerade.core import discovery, seeding
from masquerade.core.images import GALLERY, OK, TEST, FaceArchive, to_float, to_uint8
from masquerade.core.people import sort_by_hash
from masquerade.core.settings import NoParameters
from masquerade.core.statistics import find_threshold
from masquerade.judges.pixels import Pixels
from masquerade.methods import Method
from masquerade.params.paths import Paths
from masquerade.params.protocols import AttackedPeople, InformedSettings
from masquerade.params.slices import Slice
from masquerade.pipeline import anonymization
from masquerade.training.checkpoints import load_checkpoint

TESTED, HELD_OUT = "tested", "held_out"
"""The groups of people in the answers: those of the test split, and the attackers' own who were held out."""
DEALS = 10
"""How often the names of a gallery are dealt anew for a control."""
STRANGERS = 200
"""The most distances to strangers that are kept of a probe, evenly spread over all of them."""

Answer = TypeVar("Answer")
Pixelwise = Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""Images and unprotected images, (N, 3, H, W) each -> psnr and ssim, (N,) each."""


def derive_trial_seed(seed: int, trial: int) -> int:
    """The seed of a training: that of the cell, and another one for each further trial."""
    return seeding.derive_seed(seed, "trial", trial) if trial else seed


def select_own_images(archive: FaceArchive, people: AttackedPeople) -> pd.DataFrame:
    """The faces that an attacker anonymizes for itself, rows of the index.

    They show its own people, and ``people.linked`` of the tested ones in the images of the gallery.
    """
    linked = archive.select(GALLERY, status=None)
    names = sort_by_hash(linked["identity"])[: people.linked or None]
    own = select_people(archive.select("attackers", status=None), people)
    return pd.concat([own, linked[linked["identity"].isin(names)]])


def select_keyed_images(
    archive: FaceArchive, method: Method, people: AttackedPeople, seed: int, one_key: bool
) -> tuple[pd.DataFrame, anonymization.GivenKeys | None]:
    """The images of `select_own_images` and their keys (None: each image has its own).

    With ``one_key`` they also show all tested people, all under one key.
    """
    rows = select_own_images(archive, people)
    if not one_key:
        return rows, None
    keys = method.capabilities.keys
    assert keys is not None  # only methods with keys have such images
    key = keys.experiment(seed, "one key of an insider")
    given = anonymization.GivenKeys(lambda faces: [key] * len(faces), f"experiment {seed}, one key")
    return pd.concat([rows, archive.select(TEST, status=None)]), given


@dataclass(frozen=True)
class Scene:
    """The images of one attack: those of the tested people, and the attackers' own."""

    tested: Pairs
    photographs: Photographs
    """All unprotected images of the tested people, also those whose anonymization was refused."""
    linked: Pairs
    """Further images of some tested people, for attackers who link two anonymized images."""
    training_set: AttackerTrainingSet
    refused: pd.DataFrame
    """The rows of the tested images that the method refused."""


@dataclass(frozen=True)
class Attack:
    """One attacker before it attacks. ``trial``: the number of its training."""

    attacker: Attacker
    trial: int
    learned: bool
    """Whether its training made it better; True for one without a training."""


def make_scene(
    originals: FaceArchive, tested: FaceArchive, own: FaceArchive, training_set: AttackerTrainingSet
) -> Scene:
    """The scene of the images of the test split in ``tested``, and of those of the gallery in ``own``."""
    rows = tested.select(TEST, status=None)
    return Scene(
        select_pairs(originals, tested, TEST), select_photographs(originals, (TEST, GALLERY)),
        select_pairs(originals, own, GALLERY), training_set, rows[rows["status"] != OK],
    )  # fmt: skip


def read_training_set(
    originals: FaceArchive, anonymized: FaceArchive, settings: InformedSettings
) -> AttackerTrainingSet:
    """The training set of an archive of the attackers' images. Raises the errors of `collect_training_set`."""
    tested = originals.index.loc[originals.index["split"] != TRAIN, "identity"]
    return collect_training_set(originals, anonymized, settings, tested)


def build_attackers(
    names: Iterable[str], params: Slice, backbones: Mapping[str, Path], trained: Iterable[Path]
) -> list[Attack]:
    """The attackers ``names``, each once for each of its trainings.

    ``trained``: checkpoints, whose paths are those of `Paths.attacker`.
    """
    checkpoints: dict[str, list[Path]] = {}
    for path in trained:
        checkpoints.setdefault(Paths.parse("attacker", path)["attacker"], []).append(path)
    attacks = []
    for name in names:
        cls = discovery.load("attackers", name)
        trials = checkpoints.get(name) or checkpoints.get(cls.trained_as, [])[:1] or [None]
        for trial, checkpoint in enumerate(trials):
            attacker = params.build("attackers", name, backbones, checkpoint)
            learned = checkpoint is None or bool(load_checkpoint(checkpoint)[1]["learned"])
            attacks.append(Attack(attacker, trial, learned))
    return attacks


def build_recognizers(judges: Iterable[str], params: Slice, backbones: Mapping[str, Path]) -> dict[str, Recognizer]:
    """The embeddings of judges, by name."""
    built = {name: params.build("judges", name, backbones) for name in judges}
    return {
        name: _remember(lambda images, judge=judge: np.asarray(judge.measure(images)["embedding"]))
        for name, judge in built.items()
    }


def run_attacks(
    attacks: Sequence[Attack], scenes: Mapping[str, Scene], clear: Mapping[str, Recognizer], far: float
) -> pd.DataFrame:
    """Every attack on the images that it is for.

    ``scenes``: the images with keys of their own (``own``) and, for the attackers who have the key, those under one
    key (``one``). ``clear``: recognizers that know unprotected faces alone, by name. ``far``: false-accept rate of the
    thresholds, which held-out people of the attackers set under the same condition. Columns:

    - attacker, asks, recognizer, trial (a control: deal), learned, control; group, id, identity, status of the probe,
    - ``rank`` of the right person among ``people`` in the gallery (see `Distances`), the ``distance`` to the person,
      the ``strangers``' distances, the ``threshold`` (NaN: too few strangers) and the number of its ``comparisons``,
    - of an attacker who restores, for tested people: psnr, ssim and ``similarity`` (cosine, by the recognizer) to the
      probe's own original, and the same before the restoration (``before_...``).
    """
    pixels = _remember(_measure_pixels)
    frames = [
        frame
        for each in attacks
        for frame in _attack_once(
            each, scenes[each.attacker.keys], _select_recognizers(each.attacker, clear), far, pixels
        )
    ]
    return pd.concat(frames, ignore_index=True)


def _select_recognizers(attacker: Attacker, clear: Mapping[str, Recognizer]) -> Mapping[str, Recognizer]:
    """The recognizers of an attack: its own, the unprotected ones, or both."""
    trained = {name: _remember(recognizer) for name, recognizer in attacker.recognizers().items()}
    return {**trained, **clear} if attacker.beside_clear or not trained else trained


def _attack_once(
    each: Attack, scene: Scene, recognizers: Mapping[str, Recognizer], far: float, pixels: Pixelwise
) -> Iterator[pd.DataFrame]:
    attacker, held_out = each.attacker, scene.training_set.held_out
    attacker.study(scene.training_set)
    groups: dict[str, tuple[Pairs, Photographs, Pairs | None]] = {HELD_OUT: (held_out, held_out.photographs, None)}
    if len(scene.tested):
        groups[TESTED] = scene.tested, scene.photographs, scene.linked
    probes = {group: _make_probes(attacker, pairs) for group, (pairs, _, _) in groups.items()}
    refused = scene.refused[["source_id", "identity", "status"]].rename(columns={"source_id": "id"})
    for name, recognizer in recognizers.items():
        for deal in range(DEALS if attacker.control else 1):
            draw = seeding.make_generator(deal, "names", scene.training_set.digest) if attacker.control else None
            distances = {
                group: _measure_distances(attacker, *gallery, probes[group], recognizer, draw)
                for group, gallery in groups.items()
            }
            frames = {group: _list_results(groups[group][0], of_group) for group, of_group in distances.items()}
            if attacker.restores and TESTED in frames:
                restored = _compare_restorations(scene.tested, probes[TESTED], recognizer, pixels)
                frames[TESTED] = frames[TESTED].assign(**restored)
            strangers = distances[HELD_OUT].strangers
            about = {
                "attacker": discovery.find_name(type(attacker)), "asks": attacker.asks, "recognizer": name,
                "trial": each.trial + deal, "learned": each.learned, "control": attacker.control,
                "threshold": find_threshold(far, np.sort(strangers.ravel())), "comparisons": strangers.size,
            }  # fmt: skip
            rows = [*(frame.assign(group=group) for group, frame in frames.items()), refused.assign(group=TESTED)]
            yield pd.concat(rows, ignore_index=True).assign(**about)


def _list_results(pairs: Pairs, distances: Distances) -> pd.DataFrame:
    return pd.DataFrame({
        "id": pairs.ids, "identity": pairs.people, "status": OK,
        "rank": np.where(np.isfinite(distances.own), distances.ranks, np.nan), "distance": distances.own,
        "strangers": list(_thin_out(distances.strangers)), "people": distances.strangers.shape[1] + 1,
    })  # fmt: skip


def _make_probes(attacker: Attacker, pairs: Pairs) -> np.ndarray:
    """The images whose person is sought, float32 (N, 3, H, W)."""
    if attacker.asks == "protecting":
        return to_float(pairs.clear)
    images = to_float(pairs.anonymized)
    return to_float(to_uint8(attacker.restore(images))) if attacker.restores else images


def _measure_distances(
    attacker: Attacker,
    pairs: Pairs,
    photographs: Photographs,
    linked: Pairs | None,
    images: np.ndarray,
    recognizer: Recognizer,
    draw: np.random.Generator | None,
) -> Distances:
    """The distances of the probes to the people of the gallery that the attack asks about.

    ``linked``: further anonymized images. ``images``: the probes. ``draw``: deals the names of the gallery anew.
    """
    probes = EmbeddingSet(recognizer(images), pairs.people, pairs.ids)
    if attacker.asks == "linking":
        gallery = probes
        if linked:
            further = recognizer(to_float(linked.anonymized))
            gallery = EmbeddingSet(
                np.concatenate([probes.embeddings, further]), np.concatenate([pairs.people, linked.people]),
                np.concatenate([pairs.ids, linked.ids]),
            )  # fmt: skip
    else:
        gallery = EmbeddingSet(recognizer(to_float(photographs.images)), photographs.people, photographs.ids)
    if attacker.asks == "protecting":
        protected = EmbeddingSet(recognizer(to_float(pairs.anonymized)), pairs.people, pairs.ids)
        return measure_distances(probes, gallery, protected, attacker.compare)
    if draw is not None:
        gallery = EmbeddingSet(gallery.embeddings, draw.permutation(gallery.people), gallery.ids)
    return measure_distances(probes, gallery, compare=attacker.compare)


def _remember(compute: Callable[..., Answer]) -> Callable[..., Answer]:
    """``compute``, called once for equal images: the unprotected ones are the gallery of many attacks."""
    answers: dict[tuple[str, ...], Answer] = {}

    def look_up(*images: np.ndarray) -> Answer:
        key = tuple(hashlib.sha256(np.ascontiguousarray(each).data).hexdigest() for each in images)
        if key not in answers:
            answers[key] = compute(*images)
        return answers[key]

    return look_up


def _measure_pixels(images: np.ndarray, clear: np.ndarray) -> dict[str, np.ndarray]:
    """PSNR and SSIM, (N,) each."""
    measures = Pixels(NoParameters(), {}).measure(images, clear)
    return {name: measures[name] for name in ("psnr", "ssim")}


def _thin_out(strangers: np.ndarray) -> np.ndarray:
    """At most STRANGERS columns of (N, S), evenly spread over the sorted distances of a row."""
    ordered = np.sort(strangers, axis=1).astype(np.float32)
    if ordered.shape[1] <= STRANGERS:
        return ordered
    return ordered[:, np.linspace(0, ordered.shape[1] - 1, STRANGERS).round().astype(int)]


def _compare_restorations(
    pairs: Pairs, restored: np.ndarray, recognizer: Recognizer, pixels: Pixelwise
) -> dict[str, np.ndarray]:
    """What the restoration brought back, by the pixels and by a recognizer."""
    clear, before = to_float(pairs.clear), to_float(pairs.anonymized)
    person = recognizer(clear)
    return {
        **pixels(restored, clear),
        **{f"before_{name}": values for name, values in pixels(before, clear).items()},
        "similarity": _compute_cosines(recognizer(restored), person),
        "before_similarity": _compute_cosines(recognizer(before), person),
    }


def _compute_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / lengths


def share_identified(answers: pd.DataFrame) -> dict[str, float]:
    """``group.attacker.recognizer`` -> the share of its probes whose person is the nearest of the gallery."""
    ranked = answers.dropna(subset="rank")
    attack = ranked["group"] + "." + ranked["attacker"] + "." + ranked["recognizer"]
    return (ranked["rank"] == 1).groupby(attack).mean().to_dict()


def draw_samples(attacks: Sequence[Attack], scenes: Mapping[str, Scene], count: int = 8) -> dict[str, np.ndarray]:
    """Attacker -> the first clear, anonymized and restored faces below one another: uint8 (3 H, count W, 3)."""
    pictures = {}
    for each in attacks:
        pairs = scenes[each.attacker.keys].tested
        if each.attacker.restores and len(pairs):
            restored = to_uint8(each.attacker.restore(to_float(pairs.anonymized[:count])))
            lines = pairs.clear[:count], pairs.anonymized[:count], restored
            pictures[discovery.find_name(type(each.attacker))] = np.concatenate(
                [np.concatenate(list(line), axis=1) for line in lines]
            )
    return pictures
