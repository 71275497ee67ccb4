"""Generated people in images like those of the web: who they are, what is done to an image, and what stays known."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.faces.generated import Recipe, generated_dataset
from masquerade.faces.generated.degradation import Degradation, crop_loosely, degrade

SEED = 3
NOTHING = {
    "smallest": 256, "largest": 256, "lowest_quality": 100, "highest_quality": 100, "noise": 0.0, "jitter": 0.0,
    "roll": 0.0,
}  # fmt: skip


def degradation(**changes) -> Degradation:
    """What leaves an image of 256 pixels nearly as it is, with some changes."""
    return Degradation(**{**NOTHING, **changes})


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def block(request) -> dict:
    root = Path(request.config.rootpath)
    block = yaml.safe_load((root / "params.yaml").read_text())["datasets"]["generated_wild"]
    weights = {name: f"{root}/{block[name].replace(':', '/')}.safetensors" for name in ("head", "parser")}
    few = {"identities": {"train": 0, "validation": 1, "test": 1}, "single_share": 1.0}
    return {**block, **weights, **few}


def dataset(block: dict, **changes):
    cls = discovery.load("faces", "generated_wild")
    return cls(cls.Params(**{**block, **changes}))


@pytest.fixture(scope="module")
def drawn(block, tmp_path_factory) -> tuple[list, list, Path]:
    """The records of two calls, of which the second one finds the parts of the first; and the folder of the parts."""
    folder, wild = tmp_path_factory.mktemp("parts"), dataset(block)
    wild.parts_folder = folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated_dataset, "DIRECTION_IMAGES", 8)
        return list(wild.records(256, SEED, 1)), list(wild.records(256, SEED, 1)), folder


class TestTheDataset:
    def test_nobody_is_also_in_generated_hq_or_in_two_splits(self, block, monkeypatch):
        from masquerade.faces.generated import drawing

        monkeypatch.setattr(drawing, "MEAN_OF", 2 * drawing.AXES)
        codes = []
        for name in ("generated_hq", "generated_wild"):
            cls = discovery.load("faces", name)
            recipe = Recipe(name, dataset(block).params, cls.conditions, SEED)
            studio = drawing.Studio(recipe)
            codes += [
                studio.draw_code(split, number, draw)
                for split in cls.splits
                for number in range(10)
                for draw in range(2)
            ]
        assert len(np.unique(np.round(codes, 6), axis=0)) == len(codes) == 120

    def test_a_seed_gives_the_same_images_and_the_sizes_are_known_before(self, drawn, block):
        first, second, _ = drawn
        splits = [record.row["split"] for record in first]
        assert {split: splits.count(split) for split in ("train", "validation", "test")} == dataset(block).count(SEED)
        for one, other in zip(first, second, strict=True):
            assert one.row == other.row
            np.testing.assert_array_equal(one.picture, other.picture)

    def test_attributes_and_captions_are_those_of_the_image_before_its_quality_was_reduced(self, drawn):
        records, _, folder = drawn
        sharp = [FaceArchive(path) for path in sorted(folder.glob("*/*.zip"), reverse=True)]
        for record, archive in zip(records, sharp, strict=True):
            (known,) = archive.index.to_dict("records")
            assert record.row["id"] == known["id"]
            (picture,) = archive.pictures(archive.index)
            assert np.abs(record.picture.astype(int) - picture).mean() > 2
            measured = {name for name in known if name.startswith(("attribute.", "caption"))}
            assert len(measured) == 10
            assert {name: record.row[name] for name in measured} == {name: known[name] for name in measured}
            moved = np.reshape(record.row["landmarks"], (68, 2)) - np.reshape(known["landmarks"], (68, 2))
            assert 0 < np.abs(moved).max() < 60

    def test_most_people_have_one_image(self, block):
        wild = dataset(block, single_share=0.7, pictures_most=3)
        counts = [wild.count_images(SEED, "test", person) for person in range(300)]
        assert set(counts) == {1, 2, 3}
        assert 0.6 < np.mean(np.array(counts) == 1) < 0.8


class TestTheCrop:
    def test_without_an_error_it_is_the_image(self):
        picture = draws().integers(0, 256, (64, 64, 3), dtype=np.uint8)
        points = np.array([[3.0, 5.0], [60.0, 40.0]])
        crop, moved = crop_loosely(picture, points, degradation(), draws())
        np.testing.assert_array_equal(crop, picture)
        np.testing.assert_allclose(moved, points, atol=1e-9)

    @settings(max_examples=30, deadline=None)
    @given(
        seed=st.integers(0, 10_000),
        x=st.floats(90, 160),
        y=st.floats(90, 160),
    )
    def test_points_stay_on_what_they_mark(self, seed, x, y):
        rows, columns = np.mgrid[:256, :256]
        spot = 255 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 4.0**2))
        picture = np.repeat(np.rint(spot).astype(np.uint8)[..., None], 3, axis=2)
        crop, ((found_x, found_y),) = crop_loosely(
            picture, np.array([[x, y]]), degradation(jitter=0.03, roll=6.0), draws(seed)
        )
        weights = crop[..., 0].astype(float)
        center = [(weights * columns).sum() / weights.sum(), (weights * rows).sum() / weights.sum()]
        np.testing.assert_allclose([found_x, found_y], center, atol=0.3)


class TestTheQuality:
    def test_fine_detail_is_lost_and_coarse_detail_stays(self):
        columns = np.tile(np.arange(256), (256, 1))
        stripes, halves = np.where(columns % 2, 255, 0), np.where(columns < 128, 40, 200)
        few = degradation(smallest=128, largest=128)
        for values, deviation in ((stripes, (0, 2)), (halves, (78, 82))):
            picture = np.repeat(values.astype(np.uint8)[..., None], 3, axis=2)
            assert deviation[0] <= degrade(picture, few, draws()).std() <= deviation[1]
            assert degrade(picture, degradation(), draws()).std() == pytest.approx(picture.std(), rel=0.02)

    def test_sensor_noise_has_between_a_fifth_and_all_of_its_largest_deviation(self):
        gray = np.full((256, 256, 3), 128, np.uint8)
        luma = np.array([0.299, 0.587, 0.114])  # of JPEG, which keeps half of the pixels of the two other channels
        spreads = [
            (degrade(gray, degradation(noise=0.1), draws(seed)) @ luma).std() / np.linalg.norm(luma) / 25.5
            for seed in range(20)
        ]
        assert 0.15 < min(spreads) < 0.4
        assert 0.8 < max(spreads) < 1.05
        assert np.ptp(degrade(gray, degradation(), draws())) <= 1, "without noise"

    def test_a_lower_quality_of_jpeg_is_further_from_the_image(self):
        smooth = cv2.GaussianBlur(draws().normal(128.0, 500.0, (256, 256)), (0, 0), 4.0)
        picture = np.repeat(np.clip(smooth, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        worst, middle, best = (
            np.abs(degrade(picture, degradation(lowest_quality=q, highest_quality=q), draws()) - picture.astype(float))
            for q in (10, 50, 90)
        )
        assert worst.mean() > 1.5 * middle.mean()
        assert middle.mean() > 1.5 * best.mean()

    def test_only_the_draws_decide(self):
        picture = draws().integers(0, 256, (256, 256, 3), dtype=np.uint8)
        web = Degradation(**{**NOTHING, "smallest": 80, "largest": 160, "lowest_quality": 50, "noise": 0.03})
        one, same, other = (degrade(picture, web, draws(seed)) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)

    def test_limits_in_the_wrong_order_are_an_error(self):
        with pytest.raises(ValueError, match="smallest is 200, and largest is 100"):
            degradation(smallest=200, largest=100)
