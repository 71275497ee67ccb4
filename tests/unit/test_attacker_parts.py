"""The order of controls under attack, and the parts of attackers by hand: distances, training sets, filters."""

from functools import cache

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import kit
from masquerade.attackers import _restoration
from masquerade.attackers.recognition import Margin, Naive, Shuffled
from masquerade.attackers.restoration import Interpolation, NonlocalMeans, RestorationParams, Wiener
from masquerade.attackers.study import (
    AttackerTrainingSet,
    Distances,
    EmbeddingSet,
    Pairs,
    collect_training_set,
    measure_distances,
    measure_separability,
    measure_to_people,
    select_pairs,
    select_people,
)
from masquerade.core import discovery
from masquerade.core.errors import ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_float
from masquerade.core.settings import NoParameters
from masquerade.judges.pixels import Pixels
from masquerade.metrics._examples import attack_evidence
from masquerade.networks.restorer import Restorer
from masquerade.params.protocols import AttackedPeople, InformedSettings
from masquerade.pipeline import informed
from metric_evidence import compute

SIDE, PEOPLE, PICTURES = 16, 12, 3
FACE = slice(4, 12)
SETTINGS = InformedSettings(people=0, pictures=0, linked=0, held_out=0.25, far=0.1, judges=["pixels"])


def shown(points, people, ids=None):
    """Embeddings on a line; the ids are different unless they are given."""
    ids = ids or [f"{person}{number}" for number, person in enumerate(people)]
    return EmbeddingSet(np.array(points, float)[:, None], np.array(list(people)), np.array(ids))


class TestDistances:
    gallery = shown([0, 10, 4, 20], "aabb", ["a0", "a1", "b0", "b1"])

    def test_nearest_picture_of_a_person_counts_but_not_the_probes_own_original(self):
        probes = shown([1, 1, 15], "aac", ["a0", "other", "c"])
        nearest, names = measure_to_people(probes, self.gallery)
        assert names.tolist() == ["a", "b"]
        assert nearest.tolist() == [[9, 19], [1, 3], [5, 5]]  # a0 leaves out b0 as well: one image of each person

    def test_own_person_and_strangers_are_told_apart(self):
        distances = measure_distances(shown([1, 1], "ab", ["a0", "b0"]), self.gallery)
        assert distances.own.tolist() == [9, 19]
        assert distances.strangers.tolist() == [[19], [9]]
        assert distances.ranks.tolist() == [1, 2]

    def test_person_without_another_picture_is_infinitely_far(self):
        distances = measure_distances(shown([0], "a", ["a0"]), shown([0, 5], "ab", ["a0", "b0"]))
        assert (distances.own.tolist(), distances.strangers.tolist()) == ([np.inf], [[5]])

    def test_own_gallery_stands_for_the_own_person_alone(self):
        protected = shown([100, 101, 102, 103], "aabb", ["a0", "a1", "b0", "b1"])
        distances = measure_distances(shown([1], "a", ["a0"]), self.gallery, protected)
        assert (distances.own.tolist(), distances.strangers.tolist()) == ([100], [[19]])  # without a0: |101 - 1|

    def test_probe_of_a_person_who_is_not_in_the_gallery_is_refused(self):
        with pytest.raises(ProtocolError, match="no image of 2 people of the probes, such as c"):
            measure_distances(shown([1, 2, 3], "acd"), self.gallery)

    @settings(deadline=None)
    @given(st.integers(0, 4).flatmap(lambda people: st.lists(
        st.lists(st.integers(0, 5), min_size=people + 1, max_size=people + 1), min_size=1, max_size=5)))  # fmt: skip
    def test_ranks_are_those_of_a_slow_loop(self, rows):
        own, strangers = np.array([row[0] for row in rows], float), np.array([row[1:] for row in rows], float)
        expected = []
        for row in rows:
            order = sorted([(distance, "before") for distance in row[1:]] + [(row[0], "own")])
            expected.append(order.index((row[0], "own")) + 1)
        assert Distances(own, strangers).ranks.tolist() == expected


class TestSeparability:
    @pytest.mark.parametrize(
        ("own", "strangers", "expected"),
        [
            ([1, 2], [[3, 4], [5, 6]], 1.0),
            ([5, 6], [[3, 4], [1, 2]], 0.0),
            ([1, 4], [[2, 3], [2, 3]], 0.5),
            ([2, 9], [[1, 3], [4, 5]], 3 / 8),  # 2 is nearer than 3, 4 and 5; 9 than none
            ([2], [[2, 3]], 0.5),  # a tie does not count
            ([np.inf, 1], [[0, 2], [2, 2]], 0.75),  # one probe has no other image of its person
        ],
    )
    def test_share_of_strangers_who_are_farther(self, own, strangers, expected):
        assert measure_separability(Distances(np.array(own, float), np.array(strangers, float))) == expected

    @pytest.mark.parametrize("value", [0.0, np.nan])
    def test_network_that_gives_one_embedding_or_none_has_nothing(self, value):
        probes = shown([value] * 4, "aabb")
        assert measure_separability(measure_distances(probes, probes)) == 0

    def test_without_a_probe_it_is_nothing(self):
        assert measure_separability(Distances(np.array([np.inf]), np.array([[1.0]]))) == 0


def face_archive(path, people, refused=(), change=lambda picture: picture):
    """An archive of people (name -> split and number of images); ``refused``: ids without an image."""
    draw = np.random.default_rng(0)
    with ArchiveWriter(path, {"size": SIDE}) as out:
        for person, (split, count) in people.items():
            for number in range(count):
                picture, name = draw.integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8), f"{person}{number}"
                row = {"id": name, "source_id": name, "identity": person, "split": split}
                if name in refused:
                    out.add(None, row | {"status": "refused", "reason": "this test"})
                else:
                    out.add(change(picture), row)
    return FaceArchive(path)


class TestTrainingSets:
    def archives(self, tmp_path, people, refused=()):
        originals = face_archive(tmp_path / "faces.zip", people)
        return originals, face_archive(tmp_path / "own.zip", people, refused, lambda picture: 255 - picture)

    def test_first_people_by_a_hash_and_the_first_pictures_of_each_are_chosen(self):
        rows = pd.DataFrame({"id": range(8), "identity": list("cabcabca")})
        assert select_people(rows, AttackedPeople(people=0, pictures=0, linked=0))["id"].tolist() == list(range(8))
        assert select_people(rows, AttackedPeople(people=0, pictures=2, linked=0))["id"].tolist() == [0, 1, 2, 3, 4, 5]
        # SHA-256 of b begins with 3e, of c with 2e, of a with ca
        one = AttackedPeople(people=1, pictures=0, linked=0)
        assert select_people(rows, one)["identity"].unique().tolist() == ["c"]
        assert select_people(rows, AttackedPeople(people=2, pictures=1, linked=0))["id"].tolist() == [0, 2]

    def test_people_who_are_learned_and_held_out_are_disjoint(self, tmp_path):
        people = {f"p{number}": ("train", 2) for number in range(12)}
        training_set = collect_training_set(*self.archives(tmp_path, people, ["p0" + "0"]), SETTINGS, ["someone"])
        learned, held_out = set(training_set.learn.people), set(training_set.held_out.people)
        assert not learned & held_out
        assert learned | held_out == people.keys() - {"p0"}  # p0 has one usable image left
        assert len(held_out) == 3  # a quarter of 11
        for pairs in (training_set.learn, training_set.held_out):
            assert np.array_equal(pairs.anonymized, 255 - pairs.clear)
            assert [name[:-1] for name in pairs.ids] == pairs.people.tolist()
        assert training_set.learn.numbers.tolist() == [
            sorted(learned).index(person) for person in training_set.learn.people
        ]

    def test_digest_follows_the_pictures(self, tmp_path):
        people = {f"p{number}": ("train", 2) for number in range(5)}
        digests = []
        for folder, refused in (("one", []), ("two", []), ("three", ["p11"])):
            (tmp_path / folder).mkdir()
            digests.append(
                collect_training_set(*self.archives(tmp_path / folder, people, refused), SETTINGS, []).digest
            )
        assert digests[0] == digests[1] != digests[2]

    def test_too_few_people_are_refused_with_the_number_that_is_needed(self, tmp_path):
        archives = self.archives(tmp_path, {"a": ("train", 2), "b": ("train", 2), "c": ("train", 2), "d": ("train", 1)})
        with pytest.raises(ProtocolError, match=r"has 3 people .* an attack needs 4: 2 to learn from and 2 to measure"):
            collect_training_set(*archives, SETTINGS, [])

    def test_tested_person_among_the_attackers_is_refused_by_name(self, tmp_path):
        archives = self.archives(tmp_path, {f"p{number}": ("train", 2) for number in range(5)})
        with pytest.raises(ProtocolError, match=r"1 people of the attackers are also tested \(the first: p3\)"):
            collect_training_set(*archives, SETTINGS, ["p3", "someone"])

    def test_part_without_a_usable_picture_has_no_pairs(self, tmp_path):
        archives = self.archives(tmp_path, {"a": ("train", 2), "b": ("test", 1)}, ["b0"])
        assert len(select_pairs(*archives, "test")) == 0


# ---- the order of controls ----


WORLDS = 5


def pattern(side, *name):
    """A smooth pattern of its own for each name, float (side, side, 3) with mean 0 and deviation 1."""
    draw = np.random.default_rng(list(f"{name}".encode()))
    drawn = cv2.resize(draw.normal(0, 1, (4, 4, 3)), (side, side), interpolation=cv2.INTER_CUBIC)
    return (drawn - drawn.mean()) / drawn.std()


@cache
def photograph(world, person, number):
    """A person's face, a trace of the person around it (hair, clothes), and a background of the image."""
    around, background = pattern(SIDE, world, person), pattern(SIDE, world, person, number)
    face = pattern(8, world, person, "face") + 0.3 * pattern(8, world, person, number, "expression")
    picture = 18 * around + 18 * background
    picture[FACE, FACE] = 30 * face
    return np.clip(128 + picture, 0, 255).astype(np.uint8)


def black_face(picture, world, name):
    return np.where(np.pad(np.ones((8, 8, 1), bool), ((4, 4), (4, 4), (0, 0))), 0, picture).astype(np.uint8)


def another_person(picture, world, name):
    """An image of one of 40 people who are not attacked, another one for each image."""
    chosen = np.random.default_rng(list(f"{world} {name}".encode())).integers(40)
    return photograph(world, f"stranger{chosen}", 0)


CONTROLS = {"original": lambda picture, world, name: picture, "blackout": black_face, "random": another_person}


def scene_of(folder, world, control, gallery=()):
    """The scene of one control. ``gallery``: numbers of the tested people's images that are in the gallery."""
    people = {f"p{number}": "test" for number in range(PEOPLE)} | {f"own{number}": "train" for number in range(5)}
    archives = []
    for kind, change in (("clear", CONTROLS["original"]), (control, CONTROLS[control])):
        with ArchiveWriter(folder / f"{world}-{control}-{kind}.zip", {"size": SIDE}) as out:
            for person, split in people.items():
                for number in range(PICTURES):
                    name = f"{person}.{number}"
                    part = "gallery" if split == "test" and number in gallery else split
                    row = {"id": name, "source_id": name, "identity": person, "split": part}
                    out.add(change(photograph(world, person, number), world, name), row)
        archives.append(FaceArchive(folder / f"{world}-{control}-{kind}.zip"))
    return informed.make_scene(*archives, archives[1], informed.read_training_set(*archives, SETTINGS))


def projected(images):
    """A recognizer: the pixels along fixed random directions."""
    return images.reshape(len(images), -1) @ np.random.default_rng(0).normal(size=(images[0].size, 64))


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    """Control -> attacker -> rank-1 rate in worlds of 12 people with 3 images each, and the number of probes."""
    folder, found = tmp_path_factory.mktemp("controls"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shuffled, "recognizers", lambda self: {"pixels": projected})  # it has no networks here
        attacks = [informed.Attack(cls(NoParameters(), {}), 0, True) for cls in (Naive, Shuffled)]
        for control in CONTROLS:
            frames = [
                informed.run_attacks(
                    attacks, {"per_image": scene_of(folder, world, control)}, {"pixels": projected}, 0.1
                )
                for world in range(WORLDS)
            ]
            values = compute("attack_rank1_rate", attack_evidence(pd.concat(frames, ignore_index=True).to_dict("list")))
            found[control] = {name: (value.value, value.over) for name, value in values.items()}
    return found


def test_controls_have_their_order_under_attack(rates):
    """Nothing hides less than the original; what lies around a black face still betrays; a stranger's face does not."""
    original, blackout, random = (rates[control]["naive"][0] for control in CONTROLS)
    assert original > 0.9
    assert 0.5 > blackout > random + 0.1


def test_random_identity_and_shuffled_names_are_near_chance(rates):
    attacks = [rates["random"]["naive"], *(rates[control]["shuffled"] for control in CONTROLS)]
    for rate, probes in attacks:
        assert probes == WORLDS * PEOPLE * PICTURES
        low, high = binom.interval(0.999, probes, 1 / PEOPLE)
        assert low / probes <= rate <= high / probes


def test_shuffled_names_are_never_the_strongest_attacker(rates):
    assert all(rates[control]["strongest"] == rates[control]["naive"] for control in CONTROLS)


class Links(Naive):
    asks = "linking"


def test_images_of_the_gallery_are_no_probes_and_show_whom_probes_are_sought_among(tmp_path):
    """One image of each person is anonymized. Without the gallery nobody could be found."""
    attacks = [informed.Attack(cls(NoParameters(), {}), 0, True) for cls in (Naive, Links)]
    scene = scene_of(tmp_path, 0, "original", gallery=range(1, PICTURES))
    results = informed.run_attacks(attacks, {"per_image": scene}, {"pixels": projected}, 0.1)
    results = results[results["group"] == informed.TESTED]
    assert results.groupby("asks")["id"].nunique().to_dict() == {"naming": PEOPLE, "linking": PEOPLE}
    assert (results["rank"] == 1).groupby(results["asks"]).mean().min() > 0.9
    assert (results["people"] == PEOPLE).all()


# ---- margins ----


GRID, SPREAD = 4, 0.03  # squares on a side of an image; how much two images of a person differ


class Colors(torch.nn.Module):
    """A recognizer: the colors of GRID x GRID squares, as a unit vector."""

    def forward(self, images):
        return torch.nn.functional.normalize(torch.nn.functional.avg_pool2d(images, SIDE // GRID).flatten(1))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def painted(embeddings):
    """Images, uint8, that `Colors` embeds so."""
    colors = embeddings / np.abs(embeddings).max() * 127.5 + 127.5
    squares = colors.reshape(-1, 3, GRID, GRID).transpose(0, 2, 3, 1)
    return squares.repeat(SIDE // GRID, axis=1).repeat(SIDE // GRID, axis=2).round().astype(np.uint8)


def pairs_at(margin, draw):
    """People with several images each, of which each anonymized one has the cosine ``margin`` with its original."""
    width = 3 * GRID**2
    people = np.repeat([f"p{number}" for number in range(PEOPLE)], PICTURES)
    originals = unit(unit(draw.normal(size=(PEOPLE, width))).repeat(PICTURES, axis=0)
                     + SPREAD * draw.normal(size=(len(people), width)))  # fmt: skip
    other = draw.normal(size=originals.shape)
    across = unit(other - (other * originals).sum(axis=1, keepdims=True) * originals)
    anonymized = margin * originals + np.sqrt(1 - margin**2) * across
    ids = np.array([f"{person}.{number}" for number, person in enumerate(people)])
    return Pairs(painted(originals), painted(anonymized), people, ids)


def rates_at(margin, monkeypatch):
    """The rank-1 rates of the attacker who seeks the margin and of one who seeks the nearest face, and the former."""
    draw = np.random.default_rng(0)
    kit.replace_backbones(monkeypatch, identity=Colors())
    training_set = AttackerTrainingSet(pairs_at(margin, draw), pairs_at(margin, draw), "digest")
    tested = pairs_at(margin, draw)
    refused = pd.DataFrame(columns=["source_id", "identity", "status"])
    attacker = Margin(Margin.Params(cosines=[-1.0, -0.4, 0.0, 0.4, 1.0]), {"identity": tested})
    attacks = [informed.Attack(each, 0, True) for each in (attacker, Naive(NoParameters(), {}))]
    nobody = tested.of(np.zeros(len(tested), bool))
    scenes = {"per_image": informed.Scene(tested, tested.photographs, nobody, training_set, refused)}
    frame = informed.run_attacks(attacks, scenes, attacker.recognizers(), 0.1)
    rates = compute("attack_rank1_rate", attack_evidence(frame.to_dict("list")))
    assert rates["strongest"].value == max(rates["margin"].value, rates["naive"].value)
    return rates["margin"].value, rates["naive"].value, attacker


def test_who_is_driven_to_a_margin_is_found_there_and_not_nearby(monkeypatch):
    at_the_margin, nearby, attacker = rates_at(-0.4, monkeypatch)
    assert nearby == 0
    assert at_the_margin > 0.9
    probes, gallery = np.eye(3)[:1], unit(np.array([[1.0, 0, 0], [-0.4, 0.84**0.5, 0], [0, 0, 1]]))
    np.testing.assert_allclose(attacker.compare(probes, gallery), [[1.4, 0, 0.4]])  # |cos + 0.4|


def test_who_stays_near_is_found_by_the_largest_cosine(monkeypatch):
    at_the_margin, nearby, _ = rates_at(0.9, monkeypatch)
    assert at_the_margin == nearby == 1


def test_margins_are_sought_where_a_method_or_its_training_uses_the_network_and_in_controls():
    applied = {name for name in discovery.list_names("methods")
               if Margin.applies((cls := discovery.load("methods", name)).capabilities, cls.needs)}  # fmt: skip
    assert {"falco", "cao21", "identitydp", "riddle", "original", "random_identity"} <= applied
    assert not {"gaussian_blur", "k_same", "deepprivacy"} & applied


# ---- restoration ----


def blobs(count=4, side=64):
    """Smooth images with edges, uint8 (count, side, side, 3)."""
    draw = np.random.default_rng(1)
    small = draw.integers(0, 256, (count, 8, 8, 3)).astype(np.uint8)
    return np.stack([cv2.resize(each, (side, side), interpolation=cv2.INTER_CUBIC) for each in small])


def ssim(pictures, originals):
    return Pixels(NoParameters(), {}).measure(pictures, originals)["ssim"].mean()


def blurred(pictures):
    return np.stack([cv2.GaussianBlur(each, (0, 0), 2.0, borderType=cv2.BORDER_REFLECT_101) for each in pictures])


def noisy(pictures):
    noise = np.random.default_rng(2).normal(0, 15, pictures.shape)
    return np.clip(np.rint(pictures + noise), 0, 255).astype(np.uint8)


def pixelated(pictures):
    return np.repeat(np.repeat(pictures[:, 4::8, 4::8], 8, axis=1), 8, axis=2)


@pytest.mark.parametrize(
    ("cls", "params", "change", "chosen"),
    [
        (Wiener, {"deviations": [0.7, 2.0], "balances": [0.003, 0.1]}, blurred, (2.0, 0.1)),
        (NonlocalMeans, {"strengths": [0.5, 12.0]}, noisy, 12.0),
        (Interpolation, {"blocks": [1, 8, 32]}, pixelated, 8),
        (Interpolation, {"blocks": [1, 8, 32]}, np.copy, 1),
    ],
)
def test_attacker_chooses_the_strength_on_its_own_pictures(cls, params, change, chosen, tmp_path):
    originals = blobs(8)
    rows = [{"id": f"{number}", "identity": f"p{number // 2}", "split": "train"} for number in range(8)]
    archives = []
    for kind, pictures in (("clear", originals), ("changed", change(originals))):
        with ArchiveWriter(tmp_path / f"{kind}.zip") as out:
            for picture, row in zip(pictures, rows, strict=True):
                out.add(picture, row | {"source_id": row["id"]})
        archives.append(FaceArchive(tmp_path / f"{kind}.zip"))
    attacker = cls(cls.Params(**params), {})
    training_set = collect_training_set(*archives, SETTINGS, [])
    attacker.study(training_set)
    changed = change(originals)
    restored = attacker.restore(to_float(changed))
    assert np.array_equal(restored, cls.apply(to_float(changed), chosen))
    assert np.abs(restored).max() <= 1
    assert chosen == 1 or ssim(restored, to_float(originals)) > ssim(to_float(changed), to_float(originals)) + 0.02


class TestRestorer:
    @pytest.mark.parametrize("widths", [[4, 4], [4, 8, 8]])
    def test_untrained_network_changes_nothing(self, widths):
        images = torch.from_numpy(to_float(blobs(2)))
        assert torch.equal(Restorer(widths)(images), images)

    def test_trained_network_stays_in_range(self):
        network = Restorer([4, 8])
        torch.nn.init.constant_(network.last.bias, 5.0)
        restored = network(torch.from_numpy(to_float(blobs(2))))
        assert (restored.shape, restored.max().item()) == ((2, 3, 64, 64), 1.0)


def test_training_that_helps_is_kept(tmp_path):
    """A network learns in a few steps to bring darkened images back."""
    people = {f"p{number}": ("train", 2) for number in range(6)}
    originals = face_archive(tmp_path / "faces.zip", people)
    dark = face_archive(tmp_path / "own.zip", people, change=lambda picture: picture // 2)
    params = RestorationParams(widths=[8, 8], steps=40, batch=4, learning_rate=0.01, kernel_rate=0.0, edges=1.0)
    job = kit.job(tmp_path, "0", faces=originals.path, people="attackers")
    training_set = collect_training_set(originals, dark, SETTINGS, [])
    figures = _restoration.train(params, training_set, job)
    assert figures["learned"] == 1
    restored = _restoration.load_restorer(job.checkpoint)(to_float(training_set.held_out.anonymized))
    error = np.abs(restored - to_float(training_set.held_out.clear)).mean()
    assert error == pytest.approx(figures["after"])
    assert error < 0.7 * figures["before"]
