"""Attacks on keys, and attackers who know the method: what finds a person, and what finds nothing."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from masquerade.core import discovery, face_tables
from masquerade.core.errors import ParameterError, ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.core.keys import Digits
from masquerade.core.settings import NoParameters
from masquerade.core.statistics import decode, people_weights
from masquerade.core.thresholds import estimate_threshold, pair_strangers
from masquerade.judges import Judge
from masquerade.methods import Capabilities, Method, Resources
from masquerade.metrics import Evidence
from masquerade.params import matrix, protocols
from masquerade.params.paths import Paths
from masquerade.pipeline import anonymization, informed, key_attacks, measuring
from masquerade.pipeline.rule_inputs import AttackerInputs

PEOPLE, PICTURES, SIDE = 8, 3, 8
SETTINGS = protocols.AttackSettings(judge="angle", far=0.1, pictures=24, guesses=12, averaged=12)


class Angle(Judge):
    """The color of the first pixel as a direction in the plane of red and green, with length 1."""

    title, source, quantities = "angle", "this test", {"embedding": (2,)}

    def measure(self, images, reference=None):
        plane = images[:, :2, 0, 0].astype(float)
        return {"embedding": plane / np.linalg.norm(plane, axis=1, keepdims=True)}


def turned(images, degrees):
    """Images (N, 3, H, W) whose red and green are rotated by (N,) degrees."""
    red, green = images[:, 0], images[:, 1]
    cos, sin = (part(np.radians(degrees))[:, None, None] for part in (np.cos, np.sin))
    return np.stack([red * cos - green * sin, red * sin + green * cos, images[:, 2]], axis=1).astype(np.float32)


class Turn(Method):
    """Rotates by 36 degrees for each unit of the digit plus 18, and back."""

    title, paper = "Turn", "this test"
    capabilities = Capabilities(keys=Digits(1), invertible=True)

    def anonymize(self, faces, seed, keys=None):
        return turned(faces.images, self.degrees(keys))

    def recover(self, images, keys):
        return turned(images, -self.degrees(keys))

    def degrees(self, keys):
        return np.array([36.0 * int(key) + 18 for key in keys])


class Negative(Turn):
    """Turns every face by 180 degrees, whatever the key: a sign flip undoes it."""

    def degrees(self, keys):
        return np.full(len(keys), 180.0)


@pytest.fixture
def originals(tmp_path) -> FaceArchive:
    """Test people 45 degrees apart, validation people 22, with three images two degrees apart each."""
    with ArchiveWriter(tmp_path / "faces.zip") as out:
        for split, apart in (("test", 45), ("validation", 22)):
            for person in range(PEOPLE):
                for picture in range(PICTURES):
                    angle = np.radians(apart * person + 2 * picture)
                    plane = 127.5 + 100 * np.array([np.cos(angle), np.sin(angle), 0.0])
                    pixels = np.broadcast_to(plane.round().astype(np.uint8), (SIDE, SIDE, 3))
                    name = f"{split}{person}"
                    out.add(pixels, {"id": f"{name}.{picture}", "identity": name, "split": split})
    return FaceArchive(tmp_path / "faces.zip")


def attacked(originals, tmp_path, cls=Turn, **changes):
    method = cls(cls.Params(), cls.Variant(), Resources())
    anonymization.anonymize(
        originals, tmp_path / "hidden.zip", method, originals.select("test", status=None), anonymization.Plan("v", 3, 5)
    )
    judge = Angle(Angle.Params(), {})
    source = tmp_path / "source.parquet"
    measuring.measure(originals.path, source, {"angle": judge}, ["validation", "test"])
    recognition = key_attacks.Recognition(judge, face_tables.read(source), "validation")
    attacks = key_attacks.KeyAttacks(
        originals, FaceArchive(tmp_path / "hidden.zip"), method, recognition,
        SETTINGS.model_copy(update=changes), draws=50,
    )  # fmt: skip
    return attacks.results()


def test_the_right_key_finds_the_person_and_nobody_else(originals, tmp_path):
    found = attacked(originals, tmp_path)["found"]
    assert found["right_key"]["person"]["value"] == 1.0
    assert found["right_key"]["another"]["value"] == 0.0
    assert found["right_key"]["person"]["over"] == PEOPLE * PICTURES


def test_one_of_ten_keys_is_found_by_guessing_all(originals, tmp_path):
    result = attacked(originals, tmp_path, guesses=60)
    assert result["keys"] == 10
    assert result["found"]["any_guess"]["person"]["value"] < 1.0, "the right key itself is no guess"
    one = result["found"]["guess"]["person"]
    assert 0 <= one["low"] <= one["value"] <= one["high"] < 0.3


def test_each_sample_has_the_threshold_of_the_people_who_set_it(originals, tmp_path):
    result = attacked(originals, tmp_path)
    hidden = FaceArchive(tmp_path / "hidden.zip").load()
    tested, validation = (originals.load(rows=originals.select(split)) for split in ("test", "validation"))
    anonymized, known, others = (
        Angle(Angle.Params(), {}).measure(faces.images)["embedding"] for faces in (hidden, tested, validation)
    )
    names = validation.index["identity"].to_numpy()
    thresholds = estimate_threshold(0.1, pair_strangers(others, names, 0.1), 50).draws
    assert len(set(thresholds)) > 1
    distances = np.linalg.norm(anonymized - known, axis=1)
    weights = people_weights(tested.index["identity"].to_numpy(), 50)
    expected = [
        (count @ (distances < threshold)) / count.sum() for count, threshold in zip(weights, thresholds, strict=True)
    ]
    assert decode(result["found"]["no_attack"]["person"]["draws"]) == pytest.approx(expected, nan_ok=True)


def test_a_sign_flip_finds_the_person_where_faces_are_negated(originals, tmp_path):
    found = attacked(originals, tmp_path, Negative)["found"]
    assert found["sign_flip"]["person"]["value"] == 1.0
    assert found["sign_flip"]["another"]["value"] == 0.0
    assert found["no_attack"]["person"]["value"] == 0.0


def test_the_average_finds_the_person_where_wrong_keys_scatter_around_the_right_face(originals, tmp_path):
    class Around(Turn):
        """Hides by 180 degrees; a key recovers all but an error of up to 45 degrees to either side."""

        def anonymize(self, faces, seed, keys=None):
            return turned(faces.images, np.full(len(faces), 180.0))

        def recover(self, images, keys):
            return turned(images, np.array([180.0 + 10 * (int(key) - 4.5) for key in keys]))

    found = attacked(originals, tmp_path, Around, guesses=200, averaged=200)["found"]
    assert found["average"]["person"]["value"] == 1.0
    assert found["average"]["another"]["value"] == 0.0
    assert found["guess"]["person"]["value"] < 0.9


def test_pictures_under_one_key_are_linked_and_under_a_key_each_they_are_not(originals, tmp_path):
    linked = attacked(originals, tmp_path)["linked"]
    assert linked["originals"]["value"] == linked["one_key"]["value"] == 1.0
    assert 0.3 < linked["own_keys"]["value"] < 0.8
    assert 0.3 < linked["shuffled"]["value"] < 0.7
    assert linked["one_key"]["over"] == linked["one_key"]["of"] == PEOPLE * 3


def test_linkage_equals_the_comparison_of_every_pair_with_every_pair():
    draw = np.random.default_rng(0)
    people = np.array([f"p{number}" for number in draw.integers(5, size=20)])
    embeddings = draw.integers(4, size=(20, 1)).astype(float)  # with ties
    distances = np.abs(embeddings - embeddings.T)
    pairs = [(i, j) for i in range(20) for j in range(i)]
    names, numbers = np.unique(people, return_inverse=True)

    def by_hand(counts):
        area = total = 0.0
        for i, j in pairs:
            for k, m in pairs:
                if people[i] == people[j] and people[k] != people[m]:
                    weight = counts[numbers[i]] * counts[numbers[k]] * counts[numbers[m]]
                    near, far = distances[i, j], distances[k, m]
                    area += weight * (0.5 if near == far else near < far)
                    total += weight
        return area / total

    result = key_attacks.measure_linkage(embeddings, people, draws=1)
    assert result["value"] == pytest.approx(by_hand(np.ones(len(names))))
    assert decode(result["draws"]) == pytest.approx(by_hand(people_weights(names, 1)[0]))


METRICS = ("key_attack_rate", "linkage_auc")


def values(result):
    """The metrics of attacks on keys, from the results of the attacks."""
    evidence = Evidence(*[pd.DataFrame()] * 3, judges=(), keys_attacked=result)
    return {name: discovery.load("metrics", name)(NoParameters()).compute(evidence) for name in METRICS}


def test_too_few_strangers_give_no_threshold_and_the_metric_says_so(originals, tmp_path):
    result = attacked(originals, tmp_path, far=0.0001)
    assert result["threshold"] is None
    shares = values(result)["key_attack_rate"]
    assert np.isnan(shares["right_key"].value)
    assert {share.note for share in shares.values()} == {"too few pairs of strangers for a threshold at FAR 0.0001"}


def test_the_metrics_are_what_the_attacks_found_with_their_intervals(originals, tmp_path):
    result = attacked(originals, tmp_path)
    shares, linked = values(result).values()
    assert set(shares) == {name + ending for name in result["found"] for ending in ("", ".another")}
    assert set(linked) == set(result["linked"])
    assert (shares["right_key"].value, shares["right_key.another"].value) == (1.0, 0.0)
    assert shares["any_guess"].note.startswith("angle, 12 random keys of 10 keys, threshold 0.")
    assert " at FAR 0.1 of 252 impostor pairs of 8 people; its rate is 0." in shares["any_guess"].note
    for value, plain in (
        (shares["guess"], result["found"]["guess"]["person"]),
        (linked["own_keys"], result["linked"]["own_keys"]),
    ):
        assert (value.value, value.over, value.of) == (plain["value"], plain["over"], plain["of"])
        assert value.interval == pytest.approx((plain["low"], plain["high"]), abs=1e-6)
        assert value.draws.shape == (50,)


def test_a_method_without_keys_is_refused(originals, tmp_path):
    class Keyless(Turn):
        capabilities = Capabilities(invertible=True)

        def anonymize(self, faces, seed, keys=None):
            return turned(faces.images, np.full(len(faces), 90.0))

    with pytest.raises(ProtocolError, match="takes no key"):
        attacked(originals, tmp_path, Keyless)


def test_a_method_with_keys_that_recovers_nothing_is_refused_for_that_reason(originals, tmp_path):
    class OneWay(Turn):
        capabilities = Capabilities(keys=Digits(1))

    with pytest.raises(ProtocolError, match="recovers no face"):
        attacked(originals, tmp_path, OneWay)


PLAIN, KEYED, POISONING = ("original", "control"), ("cao21", "d_9"), ("fawkes", "default")
DATASET = "synthetic_hq"


def cell(pair, seed=0):
    return SimpleNamespace(dataset=DATASET, method=pair[0], variant=pair[1], seed=seed)


@pytest.fixture(scope="module")
def inputs(tiny):
    return AttackerInputs(tiny, matrix.plan_cells(tiny, as_if_placed=True), Paths("tiny"))


def test_first_trial_keeps_the_seed_and_the_others_have_seeds_of_their_own():
    seeds = [informed.derive_trial_seed(5, trial) for trial in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert seeds[1] != informed.derive_trial_seed(6, 1)


def test_attackers_of_a_cell_are_those_whom_its_method_concerns(inputs):
    assert {"naive", "adapted", "shuffled"} <= set(inputs.of(cell(PLAIN)))
    assert "insider" not in inputs.of(cell(PLAIN))
    assert "poisoned" not in inputs.of(cell(KEYED))
    assert "poisoned" in inputs.of(cell(PLAIN))  # a control: a gallery without a protection
    assert "insider" in inputs.of(cell(KEYED))
    assert "poisoned" in inputs.of(cell(POISONING))


def test_pictures_under_one_key_are_made_for_methods_with_keys_alone(inputs):
    assert inputs.insider_faces(cell(PLAIN)) == inputs.insider_faces(cell(POISONING)) == []
    assert len(inputs.insider_faces(cell(KEYED))) == 2  # the archive and its index
    under_one_key = [path for path in inputs.archives() if "/shared/" in path]
    assert under_one_key
    assert all("/cao21/" in path for path in under_one_key)
    for pair in (PLAIN, KEYED, POISONING):
        assert inputs.paths.attackers_faces.format(key_kind="per_image", **vars(cell(pair))) in inputs.archives()


def test_repeated_attackers_of_chosen_cells_have_several_trainings(inputs):
    """Scale tiny repeats the trainings of one cell."""

    def trained(pair):
        return sorted(inputs.trained(cell(pair), "{attacker} {trial}"))

    assert trained(PLAIN) == ["adapted 0", "adapted 1", "parrot 0", "restoring 0"]
    assert trained(KEYED) == ["adapted 0", "insider 0", "parrot 0", "restoring 0"]


def test_cell_of_a_dataset_without_people_of_the_attackers_is_refused_by_name(tiny):
    cells = {"synthetic_wild": ["original/control"]}
    parameters = tiny.model_copy(update={"informed": tiny.informed.model_copy(update={"cells": cells})})
    with pytest.raises(ParameterError, match=r"cells names synthetic_wild, .* Move its patterns to synthetic_hq"):
        AttackerInputs(parameters, matrix.plan_cells(tiny, as_if_placed=True), Paths("tiny"))
