"""The utility twins: what they learn from clear and black images, their rows, resumption and refusals."""

import numpy as np
import pandas as pd
import pytest

from masquerade.backbones.landmarks import LandmarksSettings
from masquerade.core import face_tables
from masquerade.core.errors import ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.core.people import sort_by_hash
from masquerade.params.protocols import UtilitySettings
from masquerade.pipeline import downstream_utility

SIZE = 32
LANDMARKS = LandmarksSettings(
    published="", input_size=64, widths=[4], hidden=32, steps=1, batch=16, learning_rate=0.003,
    weight_decay=0.0, wing_width=10.0, wing_epsilon=2.0, floor_share=0.0,
)  # fmt: skip
SETTINGS = UtilitySettings(
    pictures=0,
    landmark_size=32, landmark_widths=[4, 8, 8], small_scale={"landmark_kernel_rate": 0.02}, landmark_steps=60,
    detector_widths=[4, 8, 8], detector_steps=60, detector_batch=8, detector_rate=0.01,
)  # fmt: skip
SHORT = SETTINGS.model_copy(update={"landmark_steps": 3, "detector_steps": 3})


def face(middle):
    """A bright spot of Gaussian shape, and 68 points around it."""
    down, across = np.mgrid[:SIZE, :SIZE]
    spot = np.exp(-((across - middle[0]) ** 2 + (down - middle[1]) ** 2) / 18)
    turn = np.linspace(0, 2 * np.pi, 68, endpoint=False)
    points = 5 * np.stack([np.cos(turn), np.sin(turn)], axis=1) + middle
    return np.repeat((40 + 215 * spot[..., None]).astype(np.uint8), 3, axis=-1), points.astype(np.float32)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """40 train and 10 usable test images of one spot, one refused test image, and one without landmarks."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("faces") / "faces.zip"
    with ArchiveWriter(path, {"size": SIZE}) as out:
        for number in range(50):
            picture, points = face(draw.uniform(12, 20, 2))
            row = {"id": f"p{number}", "identity": f"person{number // 2}", "split": "train" if number < 40 else "test"}
            out.add(picture, row | {"landmarks": points.ravel()})
        unknown = {"identity": "someone", "split": "test", "landmarks": None}
        out.add(None, unknown | {"id": "refused", "status": "refused", "reason": "no face"})
        out.add(picture, unknown | {"id": "unknown"})
    return FaceArchive(path)


def changed(originals, folder, change, most=40):
    """An archive derived from the train split; images after the first ``most`` are refused."""
    with ArchiveWriter(folder / "anonymized.zip", {"size": SIZE}) as out:
        for number, (_, row) in enumerate(originals.select("train").iterrows()):
            about = {"id": row["id"], "source_id": row["id"], "identity": row["identity"], "split": "train"}
            if number < most:
                out.add(change(originals.load(rows=originals.index[originals.index["id"] == row["id"]])), about)
            else:
                out.add(None, about | {"status": "refused", "reason": "a test"})
    return FaceArchive(folder / "anonymized.zip")


def clear(faces):
    return np.rint((faces.images[0].transpose(1, 2, 0) + 1) * 127.5).astype(np.uint8)


def black(faces):
    return np.zeros_like(clear(faces))


@pytest.fixture(scope="module")
def copied(originals, tmp_path_factory):
    return changed(originals, tmp_path_factory.mktemp("clear"), clear)


def run(originals, anonymized, state, settings=SHORT, log=lambda step, losses: None):
    return downstream_utility.learn_and_test(originals, anonymized, LANDMARKS, settings, state, 0, log)


def test_twins_that_learn_from_clear_pictures_are_better(originals, copied, tmp_path):
    from_clear = run(originals, copied, tmp_path / "clear.state", SETTINGS)
    from_black = run(originals, changed(originals, tmp_path, black), tmp_path / "black.state", SETTINGS)
    assert from_clear["landmark_error"].mean() < 0.7 * from_black["landmark_error"].mean()
    assert from_clear["found"].mean() > from_black["found"].mean() + 0.3
    assert from_clear["overlap"].mean() > from_black["overlap"].mean() + 0.1


def test_every_usable_test_picture_has_a_row(originals, copied, tmp_path):
    frame = run(originals, copied, tmp_path / "state")
    assert frame["id"].tolist() == [*(f"p{number}" for number in range(40, 50)), "unknown"]
    assert frame["identity"].tolist() == originals.select("test")["identity"].tolist()
    assert frame.iloc[:-1].notna().all(axis=None)
    assert frame.iloc[-1][["landmark_error", "found", "overlap"]].isna().all()
    assert frame["overlap"].dropna().between(0, 1).all()
    face_tables.write_table(frame, tmp_path / "utility.parquet")
    read = face_tables.read(tmp_path / "utility.parquet")
    pd.testing.assert_frame_equal(read, frame.astype({"found": float}), check_dtype=False)


@pytest.mark.parametrize("last", [2, 4])
def test_interrupted_twins_give_the_same_rows(originals, copied, tmp_path, monkeypatch, last):
    """An interruption in the training of the first network, and one in that of the second."""
    whole = run(originals, copied, tmp_path / "whole")
    monkeypatch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
    task_step, steps = downstream_utility.Phases.step, []

    def step(task, number):
        if number == last and number not in steps:
            steps.append(number)
            raise KeyboardInterrupt
        steps.append(number)
        return task_step(task, number)

    monkeypatch.setattr(downstream_utility.Phases, "step", step)
    with pytest.raises(KeyboardInterrupt):
        run(originals, copied, tmp_path / "cut")
    resumed = run(originals, copied, tmp_path / "cut")
    assert steps == [*range(last + 1), *range(last, 6)]  # no step was repeated
    pd.testing.assert_frame_equal(resumed, whole)


def test_every_method_gives_as_many_pictures_of_the_first_people(originals, copied):
    few = downstream_utility._select_training(originals, copied, 10)
    first = sort_by_hash(originals.select("train")["identity"])[:5]  # two images each
    of_first = originals.select("train")["identity"].isin(first)
    assert len(few.pictures) == len(few.landmarks) == len(few.corners) == 10
    expected = originals.pictures(originals.select("train")[of_first])
    assert sorted(each.tobytes() for each in few.pictures) == sorted(each.tobytes() for each in expected)
    assert len(downstream_utility._select_training(originals, copied, 0).pictures) == 40


def test_too_few_pictures_are_refused_with_their_number(originals, tmp_path):
    few = changed(originals, tmp_path, clear, most=1)
    with pytest.raises(ProtocolError, match=r"has 1 usable images .* need at least 2"):
        run(originals, few, tmp_path / "state")


def test_detector_sees_the_same_views_of_the_test_pictures_for_every_seed(originals, copied, tmp_path, monkeypatch):
    seen, original = [], downstream_utility.evaluate_detections

    def noted(answers, corners, size):
        seen.append(corners)
        return original(answers, corners, size)

    monkeypatch.setattr(downstream_utility, "evaluate_detections", noted)
    for seed in (0, 1):
        state = tmp_path / f"{seed}"
        downstream_utility.learn_and_test(originals, copied, LANDMARKS, SHORT, state, seed, lambda *_: None)
    assert seen[0].equal(seen[1])
